import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { encodeWakeUp, tierFor, type WakeUp } from '../domain/wakeup.ts';
import type { Log } from '../runtime/log.ts';
import { type BrokerConfig, keepLine } from './connection.ts';
import { inspectQueues, type QueueState } from './inspect-queues.ts';
import { createOutbox, type PublisherCounters } from './outbox.ts';
import { type Outgoing, PublishError } from './outgoing.ts';
import { namesOf } from './topology.ts';

export interface Publisher {
  /** Sends a wake-up into the delay ladder. Rejects with RangeError when the time is NaN, else as `publish`. */
  wake(wakeUp: WakeUp, remainingMs: number, traceParent?: string): Promise<void>;
  /**
   * Resolves when the broker has confirmed, and only then. Rejects with a PublishError otherwise, at once while there is
   * no connection; or with the driver's error when the message cannot be encoded, which hurts no other.
   */
  publish(message: Outgoing): Promise<void>;
  /** How many messages of a queue wait for a consumer; undefined when there is no such queue. */
  countReady(queue: string): Promise<number | undefined>;
  /** The state of each of these queues that there is. */
  inspectQueues(queues: readonly string[]): Promise<Map<string, QueueState>>;
  isReady(): boolean;
  /** Waits for what is in flight, then disconnects. */
  close(): Promise<void>;
  readonly counters: Readonly<PublisherCounters>;
}

/** How much later than promised a publish may be given up, as a part of the time promised. */
const EXPIRY_STEPS = 20;

/**
 * A publisher on a connection of its own, which is made again for ever.
 *
 * Resolves after the first attempt to connect, successful or not; rejects when the broker refuses user or virtual host.
 */
export async function connectPublisher(config: BrokerConfig, log: Log): Promise<Publisher> {
  const names = namesOf(config.prefix);
  const outbox = createOutbox(config);
  let connection: ChannelModel | undefined;
  let isBlocked = false;
  let closing: Promise<void> | undefined;

  function attach(channel: ConfirmChannel, fresh: ChannelModel): void {
    isBlocked = false;
    connection = fresh;
    fresh.on('blocked', (reason: string) => {
      isBlocked = true;
      log.warn('broker.blocked', { reason });
    });
    fresh.on('unblocked', () => {
      isBlocked = false;
      log.info('broker.unblocked');
    });
    channel.on('close', () => {
      if (connection === fresh) connection = undefined;
    });
    outbox.attach(channel);
  }

  /** Why nothing can be sent now. */
  function findObstacle(): PublishError | undefined {
    if (closing !== undefined) return new PublishError('not_connected', 'the publisher was closed');
    if (connection === undefined) return new PublishError('not_connected', 'the broker is not connected');
    // What is sent now would only be stuck until the alarm is over.
    if (isBlocked)
      return new PublishError('not_connected', 'the broker takes nothing, it is short of memory or disk');
    return undefined;
  }

  function publish(message: Outgoing): Promise<void> {
    const obstacle = findObstacle();
    return obstacle === undefined ? outbox.publish(message) : Promise.reject(obstacle);
  }

  const expiry = setInterval(() => outbox.expire(), Math.max(1, config.confirmTimeoutMs / EXPIRY_STEPS));
  expiry.unref();
  const line = await keepLine({ config, log, purpose: 'publisher', attach }).catch((error: unknown) => {
    clearInterval(expiry);
    throw error;
  });

  return {
    wake(wakeUp, remainingMs, traceParent) {
      try {
        return publish({
          exchange: names.wake,
          routingKey: tierFor(remainingMs),
          body: encodeWakeUp(wakeUp),
          ...(traceParent === undefined ? {} : { headers: { traceparent: traceParent } }),
        });
      } catch (error) {
        return Promise.reject(error);
      }
    },
    publish,
    async countReady(queue) {
      const obstacle = findObstacle();
      if (connection === undefined || obstacle !== undefined) throw obstacle;
      return (await inspectQueues(connection, [queue])).get(queue)?.ready;
    },
    async inspectQueues(queues) {
      const obstacle = findObstacle();
      if (connection === undefined || obstacle !== undefined) throw obstacle;
      return inspectQueues(connection, queues);
    },
    isReady: () => findObstacle() === undefined,
    close() {
      closing ??= outbox.drain().then(async () => {
        clearInterval(expiry);
        await line.close();
      });
      return closing;
    },
    counters: outbox.counters,
  };
}
