import type { ChannelModel, GetMessage } from 'amqplib';
import { type BrokerConfig, withConnection } from './connection.ts';
import { type Incoming, readMessage } from './incoming.ts';
import type { Outgoing } from './outgoing.ts';
import type { Publisher } from './publisher.ts';
import { ERROR_HEADER, reasonSetAside, withoutBrokerHeaders } from './set-aside.ts';
import { namesOf } from './topology.ts';

/** A command that was rejected, as far as people need to see it. */
export interface RejectedCommand {
  readonly routingKey: string;
  readonly messageId: string | undefined;
  /** `code: text`; `delivery_limit: …` where the broker set it aside itself; undefined: nobody says. */
  readonly error: string | undefined;
  readonly bytes: number;
}

export interface ReplayOptions {
  /** How many at most. */
  readonly limit: number;
  readonly onCommand: (command: RejectedCommand) => void;
}

/**
 * Puts rejected commands back to where commands enter, oldest first, each as it came and without the reason.
 *
 * One is acknowledged after the broker has confirmed its copy, so none is lost. Ends with what was there at the start:
 * what is rejected again meanwhile is not put back again.
 *
 * @returns how many were put back
 */
export function replayRejected(
  config: BrokerConfig,
  publisher: Publisher,
  options: ReplayOptions,
): Promise<number> {
  const names = namesOf(config.prefix);
  return takeRejected(config, options, async (message) => {
    await publisher.publish(asItCame(readMessage(message), names.commands));
    return 'done';
  });
}

/**
 * Shows rejected commands, oldest first, and leaves them where they are.
 *
 * They are taken and given back, which counts towards the delivery limit of their queue: a policy of the topology puts
 * it far away, where RabbitMQ 4 would drop them at 20.
 *
 * @returns how many were shown
 */
export function peekRejected(config: BrokerConfig, options: ReplayOptions): Promise<number> {
  return takeRejected(config, options, () => Promise.resolve('keep'));
}

/** How many rejected commands wait. Throws when the queue is missing. */
export function countRejected(config: BrokerConfig): Promise<number> {
  return withConnection(config, 'rejected commands', (connection) => countWaiting(connection, config));
}

async function countWaiting(connection: ChannelModel, config: BrokerConfig): Promise<number> {
  const channel = await connection.createChannel();
  channel.on('error', () => undefined);
  const { messageCount } = await channel.checkQueue(namesOf(config.prefix).commandsRejected);
  await channel.close();
  return messageCount;
}

function takeRejected(
  config: BrokerConfig,
  { limit, onCommand }: ReplayOptions,
  handle: (message: GetMessage) => Promise<'done' | 'keep'>,
): Promise<number> {
  return withConnection(config, 'rejected commands', async (connection) => {
    const atMost = Math.min(limit, await countWaiting(connection, config));
    const channel = await connection.createChannel();
    channel.on('error', () => undefined);
    let taken = 0;
    try {
      for (; taken < atMost; taken += 1) {
        const message = await channel.get(namesOf(config.prefix).commandsRejected);
        if (message === false) break;
        onCommand(describe(readMessage(message)));
        if ((await handle(message)) === 'done') channel.ack(message);
      }
    } finally {
      // First of all the channel: an ack in its buffer would be overtaken by the end of the connection. What was not
      // acknowledged goes back to its place.
      await channel.close().catch(() => undefined);
    }
    return taken;
  });
}

function describe({ routingKey, properties, body }: Incoming): RejectedCommand {
  return {
    routingKey,
    messageId: properties.messageId,
    error: reasonSetAside(properties.headers),
    bytes: body.length,
  };
}

function asItCame({ routingKey, body, properties }: Incoming, exchange: string): Outgoing {
  const { headers, messageId, correlationId, contentType, userId: _, ...others } = properties;
  const { [ERROR_HEADER]: __, ...kept } = withoutBrokerHeaders(headers);
  return {
    exchange,
    routingKey,
    body,
    headers: kept,
    properties: others,
    contentType: contentType ?? 'application/octet-stream',
    ...(messageId === undefined ? {} : { messageId }),
    ...(correlationId === undefined ? {} : { correlationId }),
  };
}
