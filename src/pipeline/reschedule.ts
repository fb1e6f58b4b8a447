import { isDeepStrictEqual } from 'node:util';
import type { Calendars, Due } from '../domain/calendar/calendars.ts';
import { Refusal, refuseField } from '../domain/refusal.ts';
import { dataOf, reminderBodyOfData } from '../domain/requests/body.ts';
import { moveDeliveries } from '../store/moves.ts';
import { inTransaction, type Pool, type Queryable } from '../store/pool.ts';
import { findReminder, listOpenReminders, listReminders, type Reminder } from '../store/reminders.ts';
import {
  findBody,
  findRescheduleRequest,
  lockDelivery,
  type Reschedule,
  rescheduleDelivery,
  type StoredBody,
} from '../store/reschedules.ts';
import { requireWindow } from './accept-reminders.ts';
import type { Announcer } from './announce.ts';

/** Which reminder is meant: itself, or the only one of its contract that has not ended. */
export type ReminderReference = { readonly reminderId: string } | { readonly contractRef: string };

/** New timing of a reminder; what is undefined stays as it was asked for. */
export interface RescheduleRequest {
  readonly reference: ReminderReference;
  readonly renewalDate?: string | undefined;
  readonly noticePeriod?: string | undefined;
  readonly deadline?: string | undefined;
  readonly deadlineAt?: Date | undefined;
  /** A command that comes again under its key, after others have come, changes nothing; undefined: it has none. */
  readonly idempotencyKey?: string | undefined;
  readonly actor: string;
}

export interface RescheduleResult {
  /** full: the body says the new timing. timing_only: an attempt was made, and the body stays as it was sent. */
  readonly applied: 'full' | 'timing_only';
  readonly reminder: Reminder;
}

export interface CancelRequest {
  readonly reference: ReminderReference;
  readonly reason: string;
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
      // A wake-up for the old time finds that it is too early, or too late to matter; this one is for the new.
      if (moved?.state === 'due') {
        const { deliveryId } = result.reminder;
        announcer.announce([{ ...moved, deliveryId, attempt: moved.latestAttempt + 1 }]);
      }
      return result;
    },
    cancel: ({ reference, reason, actor }) =>
      underLock(reference, async (db, reminder) => {
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
          trail: JSON.stringify({ reason, reminder_id: reminder.reminderId }),
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

function requireOpen({ state, reminderId }: Reminder): void {
  if (state === 'delivered')
    throw new Refusal('already_delivered', `${reminderId} was delivered: nothing is sent again`);
  if (state === 'dead_lettered' || state === 'cancelled') {
    const ended = state === 'cancelled' ? 'was cancelled' : 'was dead-lettered';
    throw new Refusal('transition_not_allowed', `${reminderId} ${ended}: replay its delivery first`);
  }
}

async function reschedule(
  db: Queryable,
  of: { reminder: Reminder; request: RescheduleRequest; options: ReschedulerOptions },
): Promise<{ result: RescheduleResult; moved?: Awaited<ReturnType<typeof rescheduleDelivery>> }> {
  const { reminder, request, options } = of;
  const body = await findBody(db, reminder.reminderId);
  if (body === undefined) throw new Error(`${reminder.reminderId} has no body`);
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
  const wanted = merge(reminder, request);
  if (done !== undefined) {
    if (!isDeepStrictEqual(done, JSON.parse(JSON.stringify(asked)))) {
      throw refuseField(
        '/idempotency_key',
        'this idempotency key belongs to a reschedule with other values: choose another key',
        'idempotency_key_reused',
      );
    }
    return { result: { applied: appliedBefore(reminder, body), reminder } };
  }
  requireOpen(reminder);
  const due = options.calendars.computeDue(wanted);
  if (isInForce(wanted, due, reminder))
    return { result: { applied: appliedBefore(reminder, body), reminder } };
  requireWindow(due, { now: body.now, timeoutMs: options.timeoutMs });
  const applied = reminder.attempt === 0 && body.bytes !== undefined ? 'full' : 'timing_only';
  const change = { ...wanted, ...timingOf(due, { reminder, now: body.now }) };
  const newBody = applied === 'full' ? rebuild({ ...reminder, ...change, at: body.now }, body) : undefined;
  const moved = await rescheduleDelivery(
    db,
    {
      ...change,
      deadlinePeriod: wanted.deadline,
      deadlineGivenAt: wanted.deadlineAt,
      deliveryId: reminder.deliveryId,
      reminderId: reminder.reminderId,
      body: newBody,
      actor: request.actor,
      timeoutMs: options.timeoutMs,
      trail: JSON.stringify({
        reminder_id: reminder.reminderId,
        revision: reminder.revision + 1,
        applied,
        request: asked,
        idempotency_key: request.idempotencyKey,
        from: describe(reminder),
        to: describe({ ...wanted, dueAt: due.dueAt, deadlineAt: due.deadlineAt }),
        body_sha256: newBody?.sha256.toString('hex'),
        due_proof: due.proof,
      }),
    },
    'reschedule',
  );
  return { result: { applied, reminder: await reload(db, reminder.reminderId) }, moved };
}

type Wanted = Pick<Reminder, 'renewalDate' | 'noticePeriod' | 'jurisdiction'> & {
  readonly timeZone: string | undefined;
  readonly deadline: string | undefined;
  readonly deadlineAt: Date | undefined;
};

/** What was asked for, with what is asked for now in its place. */
function merge(reminder: Reminder, request: RescheduleRequest): Wanted {
  const { deadline, deadlineAt } = request;
  const keepsDeadline = deadline === undefined && deadlineAt === undefined;
  return {
    renewalDate: request.renewalDate ?? reminder.renewalDate,
    noticePeriod: request.noticePeriod ?? reminder.noticePeriod,
    jurisdiction: reminder.jurisdiction,
    timeZone: reminder.timeZoneGiven,
    deadline: keepsDeadline ? reminder.deadlinePeriod : deadline,
    deadlineAt: keepsDeadline ? reminder.deadlineGivenAt : deadlineAt,
  };
}

function isInForce(wanted: Wanted, due: Due, reminder: Reminder): boolean {
  return (
    wanted.renewalDate === reminder.renewalDate &&
    wanted.noticePeriod === reminder.noticePeriod &&
    wanted.deadline === reminder.deadlinePeriod &&
    wanted.deadlineAt?.getTime() === reminder.deadlineGivenAt?.getTime() &&
    due.dueAt.getTime() === reminder.dueAt.getTime() &&
    due.deadlineAt.getTime() === reminder.deadlineAt.getTime()
  );
}

/** The columns of a computed time; once an attempt was made, it is settled whether the reminder started late. */
export function timingOf(
  due: Due,
  { reminder, now }: { readonly reminder: Reminder; readonly now: Date },
): Pick<Reschedule, 'timeZone' | 'dueAt' | 'deadlineAt' | 'lateStart' | 'dueProof'> {
  return {
    timeZone: due.timeZone,
    dueAt: due.dueAt,
    deadlineAt: due.deadlineAt,
    lateStart: reminder.attempt === 0 ? due.dueAt < now : reminder.lateStart,
    dueProof: due.proof,
  };
}

type Head = Parameters<typeof reminderBodyOfData>[0];

function rebuild(
  head: Head,
  { bytes, dataOffset }: StoredBody,
): ReturnType<typeof reminderBodyOfData> | undefined {
  return bytes && reminderBodyOfData(head, dataOf({ bytes, dataOffset }));
}

/** Whether the stored body says the timing that is in force. */
function appliedBefore(reminder: Reminder, { bytes, dataOffset }: StoredBody): RescheduleResult['applied'] {
  if (bytes === undefined) return 'timing_only';
  const head = JSON.parse(`${bytes.subarray(0, dataOffset).toString()}null}`) as Record<string, unknown>;
  const says =
    head['renewal_date'] === reminder.renewalDate &&
    head['notice_period'] === reminder.noticePeriod &&
    head['deadline_at'] === reminder.deadlineAt.toISOString();
  return says ? 'full' : 'timing_only';
}

function describe(timing: {
  readonly renewalDate: string;
  readonly noticePeriod: string;
  readonly dueAt: Date;
  readonly deadlineAt: Date;
}): Record<string, unknown> {
  return {
    renewal_date: timing.renewalDate,
    notice_period: timing.noticePeriod,
    due_at: timing.dueAt,
    deadline_at: timing.deadlineAt,
  };
}
