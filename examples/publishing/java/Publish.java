import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Sends one command to duepost and waits until it is committed there.
 *
 * <pre>java Publish ROUTING_KEY &lt; command.json</pre>
 *
 * Exit codes: 0 accepted, 65 refused (either way the answer is on stdout), 64 wrong usage, 75 no answer: the outcome is
 * unknown, so run it again with the same command and key.
 */
public final class Publish {
  private static final String EXCHANGE = env("DUEPOST_COMMANDS", "duepost.commands");
  private static final long PATIENCE_MS = (long) (1000 * Double.parseDouble(env("ANSWER_SECONDS", "10")));
  private static final int TRIES = 5;
  /** The broker's own way back: no queue to declare, so the user needs no right but to publish. */
  private static final String REPLY_TO = "amq.rabbitmq.reply-to";

  public static void main(String[] args) throws Exception {
    byte[] body = System.in.readAllBytes();
    ObjectMapper json = new ObjectMapper();
    JsonNode key = json.readTree(body).path("idempotency_key");
    if (args.length != 1 || !key.isTextual()) {
      System.err.println("usage: java Publish ROUTING_KEY < command.json, with an idempotency_key in it");
      System.exit(64);
    }
    for (int n = 1; n <= TRIES; n++) {
      try {
        // The same bytes under the same key each time: however many of them arrive, they are one thing.
        byte[] answer = ask(args[0], body, key.textValue());
        System.out.println(new String(answer, StandardCharsets.UTF_8));
        // A refusal is final: the same command would be refused again.
        System.exit(json.readTree(answer).path("ok").asBoolean() ? 0 : 65);
      } catch (IOException | TimeoutException | ExecutionException | ShutdownSignalException error) {
        System.err.printf("try %d of %d: %s%n", n, TRIES, error);
        Thread.sleep(PATIENCE_MS / 10);
      }
    }
    System.exit(75);
  }

  /** One try; throws when nobody knows what became of the command. */
  private static byte[] ask(String routingKey, byte[] body, String key) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(env("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672"));
    factory.setRequestedHeartbeat(10);
    factory.setConnectionTimeout((int) PATIENCE_MS);
    // A new connection per try; one that mends itself would not say what became of the message.
    factory.setAutomaticRecoveryEnabled(false);
    try (Connection connection = factory.newConnection()) {
      Channel channel = connection.createChannel();
      channel.confirmSelect();
      String correlationId = UUID.randomUUID().toString();
      CompletableFuture<byte[]> answered = new CompletableFuture<>();
      connection.addShutdownListener(answered::completeExceptionally);
      channel.addReturnListener(
          returned -> answered.completeExceptionally(
              new IOException("no queue behind " + EXCHANGE + ": apply the topology")));
      channel.basicConsume(
          REPLY_TO,
          true,
          (tag, answer) -> {
            if (correlationId.equals(answer.getProperties().getCorrelationId())) answered.complete(answer.getBody());
          },
          tag -> answered.completeExceptionally(new IOException("the consumer was cancelled")));
      AMQP.BasicProperties properties =
          new AMQP.BasicProperties.Builder()
              .deliveryMode(2) // persistent
              .contentType("application/json")
              .messageId(key)
              .replyTo(REPLY_TO)
              .correlationId(correlationId)
              .build();
      boolean mandatory = true; // tell us if no queue takes it
      channel.basicPublish(EXCHANGE, routingKey, mandatory, properties, body);
      // The confirm says that the broker has it; the answer, that duepost has committed it.
      channel.waitForConfirmsOrDie(PATIENCE_MS);
      return answered.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }
  }

  private static String env(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }
}
