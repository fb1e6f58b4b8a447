import { isDeepStrictEqual } from 'node:util';
import type { Calendars, Due } from '../../domain/calendar/calendars.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import { moveDeliveries } from '../../store/moves.ts';
import { inTransaction, type Pool, type Queryable } from '../../store/pool.ts';
import { findReminder, listOpenReminders, listReminders, type Reminder } from '../../store/reminders.ts';
import {
  findBody,
  findCancelReason,
  findRescheduleRequest,
  lockDelivery,
  type Rescheduled,
} from '../../store/reschedules.ts';
import { requireWindow } from '../accept/reminders.ts';
import type { Announcer } from '../announce.ts';
import { type Applied, appliedBefore, type Timing, timingOf, writeTiming } from './timing.ts';

/** Which reminder is meant: itself, or the only one of its contract that has not ended. */
export type ReminderReference = { readonly reminderId: string } | { readonly contractRef: string };

/** New timing of a reminder; what is undefined stays as it was asked for. */
export interface RescheduleRequest {
  readonly reference: ReminderReference;
  readonly renewalDate?: string | undefined;
  readonly noticePeriod?: string | undefined;
  readonly deadline?: string | undefined;
  readonly deadlineAt?: Date | undefined;
  /** Why, for the audit trail; undefined: they did not say. */
  readonly reason?: string | undefined;
  /** A command that comes again under its key, after others have come, changes nothing; undefined: it has none. */
  readonly idempotencyKey?: string | undefined;
  readonly actor: string;
}

export interface RescheduleResult {
  readonly applied: Applied;
  readonly reminder: Reminder;
}

export interface CancelRequest {
  readonly reference: ReminderReference;
  readonly reason: string;
  /** As of a reschedule: what was cancelled under it and replayed since is not cancelled again by a repetition. */
  readonly idempotencyKey?: string | undefined;
  readonly actor: string;
}

/** Moves and cancels reminders that have not ended; each call throws a Refusal for what it will not do. */
export interface Rescheduler {
  reschedule(request: RescheduleRequest): Promise<RescheduleResult>;
  /** What is cancelled already stays so. */
  cancel(request: CancelRequest): Promise<{ readonly reminder: Reminder }>;
}

export interface ReschedulerOptions {
  readonly pool: Pool;
  readonly announcer: Announcer;
  readonly calendars: Calendars;
  /** How long a call may take: nothing is moved to where it could not be sent in time. */
  readonly timeoutMs: number;
}

export function createRescheduler(options: ReschedulerOptions): Rescheduler {
  const { pool, announcer, timeoutMs } = options;

  /** Runs `work` on the reminder as it is under its delivery's lock. */
  async function underLock<T>(
    reference: ReminderReference,
    work: (db: Queryable, reminder: Reminder) => Promise<T>,
  ): Promise<T> {
    const { deliveryId, reminderId } = await resolve(pool, reference);
    return inTransaction(pool, async (db) => {
      await lockDelivery(db, deliveryId);
      return work(db, await reload(db, reminderId));
    });
  }

  return {
    async reschedule(request) {
      const { result, moved } = await underLock(request.reference, (db, reminder) =>
        reschedule(db, { reminder, request, options }),
      );
      killPoint('reschedule.committed');
      // A wake-up for the old time finds that it is too early, or too late to matter; this one is for the new.
      if (moved?.state === 'due') {
        const { deliveryId } = result.reminder;
        void announcer.announce([{ ...moved, deliveryId }]);
      }
      return result;
    },
    cancel: ({ reference, reason, idempotencyKey, actor }) =>
      underLock(reference, async (db, reminder) => {
        const done =
          idempotencyKey === undefined
            ? undefined
            : await findCancelReason(db, reminder.deliveryId, idempotencyKey);
        if (done !== undefined && done !== reason) throw keyReused('cancellation with another reason');
        if (done !== undefined) return { reminder };
        if (reminder.state === 'cancelled') return { reminder };
        requireOpen(reminder);
        if (reminder.state === 'in_flight') {
          throw new Refusal(
            'transition_not_allowed',
            `attempt ${reminder.attempt} of ${reminder.reminderId} is under way and cannot be called back: try again when it has ended`,
          );
        }
        await moveDeliveries(db, {
          move: 'cancel',
          deliveryIds: [reminder.deliveryId],
          actor,
          trail: JSON.stringify({
            reason,
            reminder_id: reminder.reminderId,
            idempotency_key: idempotencyKey,
          }),
          timeoutMs,
        });
        return { reminder: await reload(db, reminder.reminderId) };
      }),
  };
}

async function resolve(db: Queryable, reference: ReminderReference): Promise<Reminder> {
  if ('reminderId' in reference) return reload(db, reference.reminderId);
  const { contractRef } = reference;
  const open = await listOpenReminders(db, contractRef);
  // With none open, a contract that only ever had one can still be told what became of it.
  const candidates = open.length > 0 ? open : await listReminders(db, { contractRef, limit: 2 });
  const [only, ...others] = candidates;
  if (only !== undefined && others.length === 0) return only;
  throw refuseField(
    '/contract_ref',
    open.length === 0
      ? `contract ${contractRef} has no reminder that has not ended: name one by reminder_id`
      : `contract ${contractRef} has several reminders that have not ended (${open.map((r) => r.reminderId).join(', ')}): name one by reminder_id`,
    'ambiguous_reference',
  );
}

async function reload(db: Queryable, reminderId: string): Promise<Reminder> {
  const reminder = await findReminder(db, reminderId);
  if (reminder === undefined) throw new Refusal('not_found', `there is no reminder ${reminderId}`);
  return reminder;
}

function keyReused(first: string): Refusal {
  return refuseField(
    '/idempotency_key',
    `this idempotency key belongs to a ${first}: repeat it as it was then; only what is another change gets a key of its own`,
    'idempotency_key_reused',
  );
}

function requireOpen({ state, reminderId }: Reminder): void {
  if (state === 'delivered')
    throw new Refusal('already_delivered', `${reminderId} was delivered: nothing is sent again`);
  if (state === 'dead_lettered' || state === 'cancelled') {
    const ended = state === 'cancelled' ? 'was cancelled' : 'was dead-lettered';
    throw new Refusal(
      'transition_not_allowed',
      `${reminderId} ${ended}: replay its delivery first, which is sent at its time (at once if that has passed) with the body it had, or schedule another reminder`,
    );
  }
}

async function reschedule(
  db: Queryable,
  of: { reminder: Reminder; request: RescheduleRequest; options: ReschedulerOptions },
): Promise<{ result: RescheduleResult; moved?: Rescheduled | undefined }> {
  const { reminder, request, options } = of;
  const body = await findBody(db, reminder.reminderId);
  if (body === undefined) throw new Error(`${reminder.reminderId} has no body`);
  const timing = merge(timingOf(reminder), request);
  const asked = {
    renewal_date: request.renewalDate,
    notice_period: request.noticePeriod,
    deadline: request.deadline,
    deadline_at: request.deadlineAt?.toISOString(),
  };
  const done =
    request.idempotencyKey === undefined
      ? undefined
      : await findRescheduleRequest(db, reminder.deliveryId, request.idempotencyKey);
  if (done !== undefined) {
    if (!isDeepStrictEqual(done, JSON.parse(JSON.stringify(asked)))) {
      throw keyReused('reschedule with other values');
    }
    return { result: { applied: appliedBefore(reminder, body), reminder } };
  }
  requireOpen(reminder);
  const due = options.calendars.computeDue(timing);
  if (isInForce(timing, due, reminder))
    return { result: { applied: appliedBefore(reminder, body), reminder } };
  requireWindow(due, { now: body.now, timeoutMs: options.timeoutMs });
  const { applied, moved } = await writeTiming(db, {
    reminder,
    body,
    timing,
    due,
    event: 'reschedule',
    detail: { request: asked, reason: request.reason, idempotency_key: request.idempotencyKey },
    actor: request.actor,
    timeoutMs: options.timeoutMs,
  });
  killPoint('reschedule.written');
  return { result: { applied, reminder: await reload(db, reminder.reminderId) }, moved };
}

/** What was asked for, with what is asked for now in its place. */
function merge(before: Timing, request: RescheduleRequest): Timing {
  const { deadline, deadlineAt } = request;
  const keepsDeadline = deadline === undefined && deadlineAt === undefined;
  return {
    ...before,
    renewalDate: request.renewalDate ?? before.renewalDate,
    noticePeriod: request.noticePeriod ?? before.noticePeriod,
    ...(keepsDeadline ? {} : { deadline, deadlineAt }),
  };
}

function isInForce(timing: Timing, due: Due, reminder: Reminder): boolean {
  return (
    isDeepStrictEqual(timing, timingOf(reminder)) &&
    due.dueAt.getTime() === reminder.dueAt.getTime() &&
    due.deadlineAt.getTime() === reminder.deadlineAt.getTime()
  );
}
