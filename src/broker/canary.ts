import { randomUUID } from 'node:crypto';
import type { Channel, ChannelModel, ConfirmChannel } from 'amqplib';
import { DUE_NOW, encodeWakeUp, TIER_SECONDS, tierOf } from '../domain/wakeup.ts';
import { pause } from '../runtime/backoff.ts';
import { LEFT_TIER, type Names } from './topology.ts';

/** A delivery that cannot exist: a worker that meets a canary finds no row, which is an everyday thing. */
const BODY = encodeWakeUp({ deliveryId: `dlv_${'0'.repeat(26)}`, attempt: 1 });
const SHORTEST_TIER = tierOf(TIER_SECONDS[0] as number);
const PATIENCE_MS = 10_000;
const LOOK_EVERY_MS = 50;

/**
 * Sends wake-ups the way real ones go and watches where they come out. This finds what no declaration tells: a binding
 * that is gone, a queue without a leader, a dead-letter worker that is stuck.
 *
 * @returns the first problem met; without the permission to watch, only what sending alone can tell
 */
export async function sendCanaries(
  connection: ChannelModel,
  names: Names,
  timeoutMs: number,
): Promise<string[]> {
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => undefined);
  const shortest = names.tiers[0] as string;

  const now = await send(channel, { exchange: names.wake, routingKey: DUE_NOW, timeoutMs });
  if (now.fate !== 'confirmed') return [explain(now.fate, names.wake, names.deliveries)];

  const unrouted = await openWatch(connection, names.unrouted, '');
  const due = await send(channel, { exchange: names.due, routingKey: LEFT_TIER, timeoutMs });
  if (await unrouted?.saw(due.messageId)) return [explain('returned', names.due, names.deliveries)];

  // Only now that it cannot be the one queue a wake-up goes to.
  const left = await openWatch(connection, names.due, LEFT_TIER);
  const tier = await send(channel, { exchange: names.wake, routingKey: SHORTEST_TIER, timeoutMs });
  if (tier.fate !== 'confirmed') return [explain(tier.fate, names.wake, shortest)];
  for (let waitedMs = 0; left !== undefined && !(await left.saw(tier.messageId)); waitedMs += LOOK_EVERY_MS) {
    if (waitedMs > PATIENCE_MS) return [`queue ${shortest}: a canary did not come out of it`];
    await pause(LOOK_EVERY_MS);
  }
  return [];
}

type Fate = 'confirmed' | 'returned' | 'unconfirmed';

function explain(fate: Fate, exchange: string, queue: string): string {
  return fate === 'returned'
    ? `binding ${exchange} → ${queue} is missing`
    : `queue ${queue} does not confirm`;
}

async function send(
  channel: ConfirmChannel,
  { exchange, routingKey, timeoutMs }: { exchange: string; routingKey: string; timeoutMs: number },
): Promise<{ messageId: string; fate: Fate }> {
  const messageId = `canary-${randomUUID()}`;
  const waiting = new AbortController();
  let fate: Fate = 'unconfirmed';
  const markReturned = (): void => {
    fate = 'returned';
  };
  channel.once('return', markReturned);
  channel.publish(
    exchange,
    routingKey,
    BODY,
    { mandatory: true, persistent: true, messageId },
    (error: unknown) => {
      if (fate === 'unconfirmed' && error === null) fate = 'confirmed';
      waiting.abort();
    },
  );
  await pause(timeoutMs, waiting.signal);
  channel.off('return', markReturned);
  return { messageId, fate };
}

interface Watch {
  /** Whether the message has come by; the queue has it before the broker confirms it. */
  saw(messageId: string): Promise<boolean>;
}

/** A queue of our own beside the real ones, so that no worker loses a message to us. Undefined without the permission. */
async function openWatch(
  connection: ChannelModel,
  exchange: string,
  routingKey: string,
): Promise<Watch | undefined> {
  const channel: Channel = await connection.createChannel();
  channel.on('error', () => undefined);
  try {
    const { queue } = await channel.assertQueue('', {
      exclusive: true,
      durable: false,
      arguments: { 'x-queue-type': 'classic' },
    });
    await channel.bindQueue(queue, exchange, routingKey);
    return {
      async saw(messageId) {
        for (
          let message = await channel.get(queue, { noAck: true });
          message;
          message = await channel.get(queue, { noAck: true })
        ) {
          if (message.properties.messageId === messageId) return true;
        }
        return false;
      },
    };
  } catch (error) {
    if ((error as { code?: unknown }).code === 403) return undefined;
    throw error;
  }
}
