import type { Consumer } from '../broker/consumer.ts';
import type { Meters } from '../runtime/metrics.ts';
import type { Parts } from './parts.ts';

/** What every role stands on, as it is when somebody looks. */
export function measureParts(meters: Meters, { pool, publisher, announcer }: Parts): void {
  meters.source('duepost_database_pool_connections', () => [
    [['in_use'], pool.totalCount - pool.idleCount],
    [['idle'], pool.idleCount],
  ]);
  meters.source('duepost_database_pool_waiting', () => [[[], pool.waitingCount]]);
  meters.source('duepost_publisher_ready', () => [[[], publisher.isReady() ? 1 : 0]]);
  meters.source('duepost_publishes_total', () => {
    const { published, returned, unwanted, nacked, timedOut, lost } = publisher.counters;
    return [
      [['confirmed'], published],
      [['returned'], returned],
      [['reply_unwanted'], unwanted],
      [['nacked'], nacked],
      [['timed_out'], timedOut],
      [['lost'], lost],
    ];
  });
  meters.source('duepost_announcements_dropped_total', () => [
    [['failed'], announcer.counters.failed],
    [['skipped'], announcer.counters.skipped],
  ]);
}

/** A consumer of the queue with this name, without prefix and version. */
export function measureConsumer(meters: Meters, queue: string, consumer: Consumer): void {
  meters.source('duepost_messages_in_hand', () => [[[queue], consumer.inHand()]]);
  meters.source('duepost_consumer_attached', () => [[[queue], consumer.isAttached() ? 1 : 0]]);
  meters.source('duepost_messages_total', () => [
    [[queue, 'taken'], consumer.counters.taken],
    [[queue, 'acknowledged'], consumer.counters.acknowledged],
    [[queue, 'given_back'], consumer.counters.givenBack],
  ]);
}

/** A pass of a loop; undefined: nothing was done, since somebody else is at it. */
export type LoopPass = () => Promise<{ readonly again: boolean } | undefined>;

/**
 * The same pass, with its last success watched: a loop that stands still is seen by its age. That of a stand-by grows as
 * well: beside a process that hangs nobody is to look alive.
 */
export function measureLoop(meters: Meters, name: string, pass: LoopPass): LoopPass {
  let succeededAtMs = performance.now();
  meters.source('duepost_loop_age_seconds', () => [[[name], (performance.now() - succeededAtMs) / 1000]]);
  const failed = meters.counter('duepost_loop_failures_total');
  failed([name], 0);
  return async () => {
    try {
      const result = await pass();
      if (result !== undefined) succeededAtMs = performance.now();
      return result;
    } catch (error) {
      failed([name]);
      throw error;
    }
  };
}
