import type { Publisher } from '../../broker/publisher.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import type { Log } from '../../runtime/log.ts';
import { listOverdue, type OverdueDelivery } from '../../store/due.ts';
import { withLock } from '../../store/lock.ts';
import { type Move, type Moved, moveDeliveries } from '../../store/moves.ts';
import type { Pool } from '../../store/pool.ts';
import type { Announcer } from '../announce.ts';
import { ENOUGH_WAITING } from './feed.ts';
import { createWalk } from './walk.ts';

export interface ReconcileOptions {
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly announcer: Announcer;
  readonly log: Log;
  readonly deliveriesQueue: string;
  readonly graceMs: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ReconcileReport {
  /** Due and without a wake-up, as far as one can see: announced again. */
  readonly announced: number;
  /** Claims that expired: announced, so that a worker lets them lapse. */
  readonly lapsed: number;
  /** Deadlines that passed: dead-lettered. */
  readonly missed: number;
  /** Held at an endpoint that is active: due again. */
  readonly released: number;
  /** Left behind at an endpoint that was deleted: dead-lettered. */
  readonly abandoned: number;
  /** Why announcing came to an end before the pass did; undefined: it did not, or there is no connection to the broker. */
  readonly failure: unknown;
  /** Whether the round is not at its end: the next pass goes on from there, and should do so at once. */
  readonly again: boolean;
}

const NOTHING = {
  announced: 0,
  lapsed: 0,
  missed: 0,
  released: 0,
  abandoned: 0,
  failure: undefined as unknown,
  again: false,
};

const PAGE = 1_000;
/** Rows looked at in one pass; the next one goes on from there. */
const PAGES_PER_PASS = 20;
const MAX_REMEMBERED = 50_000;
const LONGEST_INTERVAL_MS = 10 * 60_000;

/** Announces again what is due and has no message; the loss detector, whose hit rate is about zero in health. */
export interface Reconciler {
  /** Undefined: somebody else is at it. */
  reconcile(): Promise<ReconcileReport | undefined>;
}

/**
 * A wake-up that is only slow is indistinguishable from one that is lost. So that a backlog is not amplified, nothing is
 * announced while the workers have enough to do but what is near its deadline, and a row that was announced waits twice
 * as long each time.
 */
export function createReconciler(options: ReconcileOptions): Reconciler {
  const announcedAt = new Map<string, { readonly atMs: number; readonly intervalMs: number }>();
  const walk = createWalk();

  function isTurn(delivery: OverdueDelivery, nowMs: number): boolean {
    const before = announcedAt.get(delivery.deliveryId);
    if (before !== undefined && nowMs < before.atMs + before.intervalMs) return false;
    const intervalMs =
      before === undefined ? options.graceMs : Math.min(2 * before.intervalMs, LONGEST_INTERVAL_MS);
    if (announcedAt.size >= MAX_REMEMBERED) announcedAt.clear();
    announcedAt.set(delivery.deliveryId, { atMs: nowMs, intervalMs });
    return true;
  }

  /** Undefined: nothing can be announced. */
  async function countWaiting(): Promise<number | undefined> {
    return options.publisher.isReady() ? options.publisher.countReady(options.deliveriesQueue) : undefined;
  }

  async function pass(): Promise<ReconcileReport> {
    const total = { ...NOTHING };
    // Deadlines pass whether the broker is there or not: what it refuses ends the announcing, never the pass.
    const waiting = await attempt(countWaiting);
    const isBusy = waiting !== undefined && waiting >= ENOUGH_WAITING / 10;
    let canAnnounce = waiting !== undefined;
    for (let pages = 0; pages < PAGES_PER_PASS && !options.signal.aborted; pages += 1) {
      const page = await listOverdue(options.pool, {
        after: walk.after(),
        graceMs: options.graceMs,
        timeoutMs: options.timeoutMs,
        limit: PAGE,
      });
      const those = (remedy: OverdueDelivery['remedy']): OverdueDelivery[] =>
        page.overdue.filter((d) => d.remedy === remedy);
      total.missed += (await move('miss', those('miss'), 'no call can end before the deadline')).length;
      total.abandoned += (await move('abandon', those('abandon'), 'its endpoint was deleted')).length;
      const released = await move('release', those('release'), 'its endpoint is active');
      total.released += released.length;
      if (canAnnounce) {
        const nowMs = performance.now();
        const urgent = new Set(page.overdue.flatMap((d) => (d.urgent ? [d.deliveryId] : [])));
        const isHeard = (d: { readonly deliveryId: string }): boolean => !isBusy || urgent.has(d.deliveryId);
        const silent = those('announce').filter((d) => isHeard(d) && isTurn(d, nowMs));
        canAnnounce = (await attempt(() => announceAll(silent, released.filter(isHeard)))) === true;
        if (canAnnounce) {
          total.announced += silent.filter((d) => d.state === 'due').length;
          total.lapsed += silent.filter((d) => d.state === 'in_flight').length;
        }
      }
      walk.take(page);
      total.again = page.full;
      if (!page.full) break;
    }
    return total;

    async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
      try {
        return await work();
      } catch (error) {
        total.failure = error;
        return undefined;
      }
    }
  }

  async function announceAll(silent: readonly OverdueDelivery[], released: readonly Moved[]): Promise<true> {
    const due = [...silent, ...released];
    await Promise.all(due.map((d) => options.announcer.announceNow(d)));
    if (due.length > 0) killPoint('reconcile.confirmed');
    return true;
  }

  async function move(how: Move, deliveries: readonly OverdueDelivery[], reason: string): Promise<Moved[]> {
    if (deliveries.length === 0) return [];
    return moveDeliveries(options.pool, {
      move: how,
      deliveryIds: deliveries.map((d) => d.deliveryId),
      actor: 'reconciler',
      trail: JSON.stringify({ reason }),
      timeoutMs: options.timeoutMs,
    });
  }

  return {
    reconcile: () => withLock(options.pool, 'duepost.reconciler', pass),
  };
}
