import type { Publisher } from '../../broker/publisher.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import { findWatermark, listDueAfter, moveWatermark } from '../../store/due.ts';
import { withLock } from '../../store/lock.ts';
import type { Pool } from '../../store/pool.ts';
import type { Announcer } from '../announce.ts';

export interface FeedOptions {
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly announcer: Announcer;
  readonly deliveriesQueue: string;
  readonly horizonMs: number;
  readonly signal: AbortSignal;
}

export interface FeedReport {
  readonly published: number;
  /** The broker has enough to do; the rest follows when that is done. */
  readonly throttled: boolean;
}

const PAGE = 1_000;

/** How many wake-ups may wait for a worker before no more are fed: plenty for it, little for the broker. */
export const ENOUGH_WAITING = 10_000;

/**
 * Publishes a wake-up for every delivery that falls due within the horizon and has had none, in due order.
 *
 * One process feeds at a time. A page's watermark moves after the broker has confirmed the page: what dies in between is
 * published twice, never forgotten.
 *
 * @returns undefined: somebody else is at it
 */
export function feed(options: FeedOptions): Promise<FeedReport | undefined> {
  return withLock(options.pool, 'duepost.feeder', () => feedPages(options));
}

async function feedPages({ pool, publisher, announcer, ...options }: FeedOptions): Promise<FeedReport> {
  let published = 0;
  const { from, to } = await findWatermark(pool, options.horizonMs);
  let after = from;
  while (!options.signal.aborted) {
    const waiting = await publisher.countReady(options.deliveriesQueue);
    if (waiting === undefined || waiting > ENOUGH_WAITING) return { published, throttled: true };
    const { due, last } = await listDueAfter(pool, { after, to, limit: PAGE });
    if (last === undefined) {
      // Everything up to the horizon has a wake-up: what is inserted before it from now on, its writer announces.
      await moveWatermark(pool, { from: after, to });
      break;
    }
    await Promise.all(due.map((delivery) => announcer.announceNow(delivery)));
    killPoint('feed.confirmed');
    published += due.length;
    // Somebody set it back while this page was under way: the next pass begins there.
    if (!(await moveWatermark(pool, { from: after, to: last }))) break;
    after = last;
  }
  return { published, throttled: false };
}
