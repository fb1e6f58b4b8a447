import { CalendarFileError } from '../../domain/calendar/calendar-file.ts';
import type { Calendars, DueProof } from '../../domain/calendar/calendars.ts';
import { compareProofs, type DriftCause } from '../../domain/calendar/compare-proofs.ts';
import { Refusal } from '../../domain/refusal.ts';
import type { Position } from '../../store/due.ts';
import { inTransaction, type Pool } from '../../store/pool.ts';
import {
  countUnsentReminders,
  findReminder,
  listUnsentReminders,
  type Reminder,
} from '../../store/reminders.ts';
import { findBody, lockDelivery } from '../../store/reschedules.ts';
import { requireWindow } from '../accept/reminders.ts';
import type { Announcer } from '../announce.ts';
import type { Operator } from '../operate/operator.ts';
import { timingOf, writeTiming } from './timing.ts';

/** A reminder whose time is another one under today's calendars and time zone data. */
export interface Drift {
  readonly reminderId: string;
  readonly deliveryId: string;
  readonly contractRef: string;
  readonly jurisdiction: string;
  readonly from: { readonly dueAt: Date; readonly deadlineAt: Date };
  readonly to: { readonly dueAt: Date; readonly deadlineAt: Date };
  readonly why: readonly DriftCause[];
  /** Undefined: it was only looked at. unchanged: it was sent, ended or changed in between. */
  readonly outcome?: 'moved' | 'unchanged';
}

/** A reminder that cannot be computed any more, or would move to where it could not be sent; it stays as it is. */
export interface DriftProblem {
  readonly reminderId: string;
  readonly contractRef: string;
  readonly code: string;
  readonly detail: string;
}

export interface DriftReport {
  readonly checked: number;
  readonly drifted: readonly Drift[];
  readonly problems: readonly DriftProblem[];
}

export interface DriftOptions {
  readonly pool: Pool;
  readonly announcer: Announcer;
  readonly calendars: Calendars;
  readonly timeoutMs: number;
  /** Who wants the plan carried out, and why; undefined: nothing is changed. */
  readonly apply: Required<Operator> | undefined;
  /** Told after each page; `total` is what there was at the start. */
  readonly onProgress?: (checked: number, total: number) => void;
}

const PAGE = 500;

/**
 * Computes the times of all reminders that have not been attempted anew, under today's calendars and time zone data, and
 * moves those that differ when told to: same key, a trail entry and a corrected wake-up each.
 */
export async function checkCalendarDrift(options: DriftOptions): Promise<DriftReport> {
  const { pool, onProgress } = options;
  const { count: total, now } = await countUnsentReminders(pool);
  const drifted: Drift[] = [];
  const problems: DriftProblem[] = [];
  let checked = 0;
  let after: Position | undefined;
  do {
    // What this run moves would come again further along: it has changed since.
    const page = await listUnsentReminders(pool, { after, unchangedSince: now, limit: PAGE });
    for (const reminder of page.reminders) {
      const finding = look(reminder, { ...options, now });
      if (finding === undefined) continue;
      if ('code' in finding) problems.push(finding);
      else drifted.push(await carryOut(finding, options));
    }
    // One page in the broker at a time: a holiday that was added late moves a whole day.
    await options.announcer.drain();
    checked += page.reminders.length;
    onProgress?.(checked, Math.max(total, checked));
    after = page.reminders.length === PAGE ? page.last : undefined;
  } while (after !== undefined);
  return { checked, drifted, problems };
}

async function carryOut(drift: Drift, options: DriftOptions): Promise<Drift> {
  const { apply, pool, calendars, announcer, timeoutMs } = options;
  if (apply === undefined) return drift;
  const moved = await inTransaction(pool, async (db) => {
    await lockDelivery(db, drift.deliveryId);
    const reminder = await findReminder(db, drift.reminderId);
    const body = await findBody(db, drift.reminderId);
    if (reminder === undefined || body === undefined || !isUnsent(reminder)) return undefined;
    // Only what the plan says: a reschedule in between was computed under today's calendars anyway.
    if (!isSame(reminder, drift.from)) return undefined;
    const timing = timingOf(reminder);
    const due = calendars.computeDue(timing);
    const change = await writeTiming(db, {
      reminder,
      body,
      timing,
      due,
      event: 'recalculate',
      detail: { reason: apply.reason, why: drift.why },
      actor: apply.actor,
      timeoutMs,
    });
    return change.moved;
  });
  if (moved?.state === 'due') {
    void announcer.announce([{ ...moved, deliveryId: drift.deliveryId }]);
  }
  return { ...drift, outcome: moved === undefined ? 'unchanged' : 'moved' };
}

function isUnsent({ state, attempt }: Reminder): boolean {
  return attempt === 0 && (state === 'due' || state === 'held');
}

function look(
  reminder: Reminder,
  { calendars, timeoutMs, now }: Pick<DriftOptions, 'calendars' | 'timeoutMs'> & { readonly now: Date },
): Drift | DriftProblem | undefined {
  const { reminderId, deliveryId, contractRef, jurisdiction, dueAt, deadlineAt } = reminder;
  try {
    const due = calendars.computeDue(timingOf(reminder));
    if (isSame(due, reminder)) return undefined;
    requireWindow(due, { now, timeoutMs });
    return {
      reminderId,
      deliveryId,
      contractRef,
      jurisdiction,
      from: { dueAt, deadlineAt },
      to: { dueAt: due.dueAt, deadlineAt: due.deadlineAt },
      why: compareProofs(reminder.dueProof as DueProof, due.proof),
    };
  } catch (error) {
    const code =
      error instanceof Refusal
        ? error.code
        : error instanceof CalendarFileError
          ? 'calendar_file'
          : undefined;
    if (code === undefined) throw error;
    return { reminderId, contractRef, code, detail: (error as Error).message };
  }
}

function isSame(
  a: { readonly dueAt: Date; readonly deadlineAt: Date },
  b: { readonly dueAt: Date; readonly deadlineAt: Date },
): boolean {
  return a.dueAt.getTime() === b.dueAt.getTime() && a.deadlineAt.getTime() === b.deadlineAt.getTime();
}
