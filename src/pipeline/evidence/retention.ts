import type { Config } from '../../runtime/config.ts';
import type { Log } from '../../runtime/log.ts';
import {
  type Class,
  countExpired,
  deleteExpired,
  deleteUnwantedEvents,
  dropMonth,
  type ExpiredMonth,
  insertRetentionMonth,
  listExpiredMonths,
  type RemovedPage,
} from '../../store/evidence/retention.ts';
import { withLock } from '../../store/lock.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, isTransient, type Pool } from '../../store/pool.ts';
import { RETENTION } from './dropped.ts';
import { whileHoldsStand } from './hold.ts';

export interface RetentionOptions {
  readonly pool: Pool;
  readonly log: Log;
  readonly retention: Config['retention'];
  readonly actor: string;
  /** Only says what would go. */
  readonly dryRun?: boolean;
  /** Ends it after the page in hand; what was begun goes on with the next run. */
  readonly signal?: AbortSignal;
}

/** What became of a month that is old enough. */
export interface RetainedMonth {
  readonly kind: 'reminder' | 'event';
  readonly month: string;
  /**
   * waits: it has too many deliveries that must be kept, or was dropped less than a month ago. kept: nothing more of it
   * may go.
   */
  readonly result: 'dropped' | 'waits' | 'kept' | 'interrupted';
  /** Deliveries that went, or would go. */
  readonly removed: number;
  /** Deliveries that stay: not ended, ended too recently, or on hold. */
  readonly kept: number;
}

/** Deliveries that may be left of a month that is dropped: their evidence is copied while the tables are locked. */
const MAX_KEPT = 1_000;
const COUNT_PAGE = 5_000;
const DELETE_PAGE = 500;

/**
 * Drops the evidence that is older than it is kept, month by month: first the deliveries that may go, in bounded
 * statements, then the month's partitions as a whole. Deliveries that have not ended, or whose contract is on hold, stay
 * with all that belongs to them. What is dropped is told by operations, which are sealed; so that these stay few, a month
 * of which something was kept is dropped again only when nothing must be kept any more, or a month later.
 *
 * @returns undefined: another process is at it
 */
export function retain(options: RetentionOptions): Promise<RetainedMonth[] | undefined> {
  return withLock(options.pool, 'duepost.retention', async () => {
    const months: RetainedMonth[] = [];
    for (const each of classesOf(options.retention)) {
      for (const month of await listExpiredMonths(options.pool, each)) {
        if (options.signal?.aborted === true) return months;
        months.push(await retainMonth(month, each, options));
      }
    }
    return months;
  });
}

type KeptClass = Class & { readonly olderThan: string };

function classesOf({ reminderYears, eventDays }: Config['retention']): KeptClass[] {
  return [
    { kind: 'event', keep: `${eventDays} days`, olderThan: `${eventDays}d` },
    { kind: 'reminder', keep: `${reminderYears} years`, olderThan: `${reminderYears}y` },
  ];
}

async function retainMonth(
  month: ExpiredMonth,
  each: KeptClass,
  options: RetentionOptions,
): Promise<RetainedMonth> {
  const { pool, log, actor } = options;
  const { kind } = month;
  const counted = await count(month, each, options);
  const report = { kind, month: month.month, removed: counted.expired, kept: counted.kept };
  if (counted.kept > MAX_KEPT) return { ...report, removed: 0, result: 'waits' };
  if (counted.kept > 0 && month.wasDropped) {
    if (counted.expired === 0) return { ...report, result: 'kept' };
    if (month.wasDroppedLately) return { ...report, removed: 0, result: 'waits' };
  }
  if (options.dryRun === true) return { ...report, result: 'dropped' };

  const detail = { kind, month: month.month, older_than: each.olderThan, open_to_past: month.isOpenToPast };
  if (!month.isBegun) {
    await inTransaction(pool, async (db) => {
      await insertRetentionMonth(db, month);
      await insertOperation(db, { subjectId: RETENTION, event: 'retention.begun', actor, detail });
    });
  }
  const removed = await remove(month, each, options);
  if (removed === undefined) return { ...report, result: 'interrupted' };
  try {
    const kept = await inTransaction(pool, async (db) => {
      const left = await dropMonth(db, { ...month, maxKept: MAX_KEPT });
      await insertOperation(db, {
        subjectId: RETENTION,
        event: 'retention.dropped',
        actor,
        detail: { ...detail, removed, kept: left },
      });
      return left.length;
    });
    log.info('month_dropped', { kind, month: month.month, removed, kept });
    return { ...report, removed, kept, result: 'dropped' };
  } catch (error) {
    // Somebody was at the tables; they are left alone until the next run.
    if (!isTransient(error)) throw error;
    log.info('month_is_busy', { kind, month: month.month });
    return { ...report, result: 'interrupted' };
  }
}

async function count(
  month: ExpiredMonth,
  each: Class,
  { pool, signal }: RetentionOptions,
): Promise<{ kept: number; expired: number }> {
  const total = { kept: 0, expired: 0 };
  let after: string | undefined = month.lower;
  while (after !== undefined && total.kept <= MAX_KEPT && signal?.aborted !== true) {
    const page = await countExpired(pool, { ...each, after, upper: month.upper, limit: COUNT_PAGE });
    total.kept += page.kept;
    total.expired += page.expired;
    after = page.last;
  }
  return total;
}

/** @returns undefined: it was told to end */
async function remove(
  month: ExpiredMonth,
  each: Class,
  { pool, signal }: RetentionOptions,
): Promise<number | undefined> {
  let removed = 0;
  for (let after: string | undefined = month.lower; after !== undefined; ) {
    if (signal?.aborted === true) return undefined;
    const next = { ...each, after, upper: month.upper, limit: DELETE_PAGE };
    const page: RemovedPage = await whileHoldsStand(pool, (db) => deleteExpired(db, next));
    removed += page.deleted;
    after = page.last;
  }
  if (each.kind === 'reminder') return removed;
  for (let after: string | undefined = ''; after !== undefined; ) {
    if (signal?.aborted === true) return undefined;
    const next = { after, month: month.month, limit: COUNT_PAGE };
    const page: RemovedPage = await whileHoldsStand(pool, (db) => deleteUnwantedEvents(db, next));
    after = page.last;
  }
  return removed;
}
