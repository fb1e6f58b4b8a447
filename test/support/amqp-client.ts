import { randomUUID } from 'node:crypto';
import type { Options } from 'amqplib';
import { openConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import type { TestProduct } from './product.ts';

/** Another service: sends commands and reads what comes back. */
export interface AmqpClient {
  /** Sends a command and waits for its answer; `correlation_id` is the one it came with. */
  call(routingKey: string, body: Buffer, properties?: Options.Publish): Promise<Record<string, unknown>>;
  /** Sends a command that asks for no answer, or for one somewhere else. */
  send(routingKey: string, body: Buffer, properties?: Options.Publish): Promise<void>;
  close(): Promise<void>;
}

/** Opens a connection of another service; nothing of duepost's own publishing is used. */
export async function openAmqpClient(product: TestProduct): Promise<AmqpClient> {
  const connection = await openConnection(product.config.broker, 'another service');
  const channel = await connection.createConfirmChannel();
  const { commands } = namesOf(product.config.broker.prefix);
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const waiting = new Map<string, (answer: Record<string, unknown>) => void>();
  await channel.consume(
    queue,
    (message) => {
      if (message === null) return;
      const id = String(message.properties.correlationId);
      waiting.get(id)?.({ ...JSON.parse(message.content.toString()), correlation_id: id });
      waiting.delete(id);
    },
    { noAck: true },
  );

  async function send(routingKey: string, body: Buffer, properties: Options.Publish = {}): Promise<void> {
    channel.publish(commands, routingKey, body, { mandatory: true, persistent: true, ...properties });
    await channel.waitForConfirms();
  }

  return {
    send,
    async call(routingKey, body, properties = {}) {
      const correlationId = randomUUID();
      const answer = new Promise<Record<string, unknown>>((resolve) => waiting.set(correlationId, resolve));
      await send(routingKey, body, { ...properties, replyTo: queue, correlationId });
      return answer;
    },
    close: () => connection.close(),
  };
}
