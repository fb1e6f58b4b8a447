import com.fasterxml.jackson.databind.ObjectMapper;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
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
 * unknown, so run it again with the same command and key, 77 the broker does not let this user in, or send that.
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
    String key = readKey(json, body);
    if (args.length != 1 || key == null) {
      System.err.println("usage: java Publish ROUTING_KEY < command.json, with an idempotency_key in it");
      System.exit(64);
    }
    for (int n = 1; n <= TRIES; n++) {
      try {
        // The same bytes under the same key each time: however many of them arrive, they are one thing.
        byte[] answer = ask(args[0], body, key);
        System.out.println(new String(answer, StandardCharsets.UTF_8));
        // A refusal is final: the same command would be refused again.
        System.exit(json.readTree(answer).path("ok").asBoolean() ? 0 : 65);
      } catch (IOException | TimeoutException | ExecutionException | ShutdownSignalException error) {
        if (isForbidden(error)) {
          System.err.println("forbidden: " + error);
          System.exit(77);
        }
        System.err.printf("try %d of %d: %s%n", n, TRIES, error);
        Thread.sleep(PATIENCE_MS / 10);
      }
    }
    System.exit(75);
  }

  /** Null when there is none, or the body is no JSON. */
  private static String readKey(ObjectMapper json, byte[] body) {
    try {
      return json.readTree(body).path("idempotency_key").textValue();
    } catch (IOException notJson) {
      return null;
    }
  }

  /** Whether the broker will not have this user do that: trying again changes nothing. */
  private static boolean isForbidden(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof PossibleAuthenticationFailureException) return true;
      if (!(cause instanceof ShutdownSignalException)) continue;
      Method reason = ((ShutdownSignalException) cause).getReason();
      if (reason instanceof AMQP.Channel.Close && ((AMQP.Channel.Close) reason).getReplyCode() == AMQP.ACCESS_REFUSED)
        return true;
      if (reason instanceof AMQP.Connection.Close && ((AMQP.Connection.Close) reason).getReplyCode() == AMQP.NOT_ALLOWED)
        return true;
    }
    return false;
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
      try {
        return answered.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
      } catch (TimeoutException late) {
        throw new TimeoutException("no answer in time");
      }
    }
  }

  private static String env(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }
}
