import type { Due } from '../../domain/calendar/calendars.ts';
import type { DueRequest } from '../../domain/calendar/due.ts';
import { dataOf, reminderBodyOfData } from '../../domain/requests/body.ts';
import type { Queryable } from '../../store/pool.ts';
import type { Reminder } from '../../store/reminders.ts';
import { type Rescheduled, rescheduleDelivery, type StoredBody } from '../../store/reschedules.ts';

/** What of a reminder decides its time. */
export type Timing = Required<DueRequest>;

/**
 * full: the body says the new timing. timing_only: the body stays as an attempt sent it, or as an audit record has its
 * hash.
 */
export type Applied = 'full' | 'timing_only';

/** What was asked for, to compute the time of a stored reminder anew. */
export function timingOf(reminder: Reminder): Timing {
  return {
    renewalDate: reminder.renewalDate,
    noticePeriod: reminder.noticePeriod,
    jurisdiction: reminder.jurisdiction,
    timeZone: reminder.timeZoneGiven,
    deadline: reminder.deadlinePeriod,
    deadlineAt: reminder.deadlineGivenAt,
  };
}

/** A reminder's new time, and who gives it why. */
export interface TimingChange {
  readonly reminder: Reminder;
  readonly body: StoredBody;
  readonly timing: Timing;
  readonly due: Due;
  /** What the trail calls it, and what it keeps beside the two times. */
  readonly event: 'reschedule' | 'recalculate';
  readonly detail: Readonly<Record<string, unknown>>;
  readonly actor: string;
  readonly timeoutMs: number;
}

/** Writes a reminder's new time, and the body that says it unless that is frozen; the caller holds the lock. */
export async function writeTiming(
  db: Queryable,
  change: TimingChange,
): Promise<{ applied: Applied; moved: Rescheduled | undefined }> {
  const { reminder, body, timing, due } = change;
  const newBody =
    isFrozen(reminder) || body.bytes === undefined
      ? undefined
      : reminderBodyOfData(
          { ...reminder, ...timing, deadlineAt: due.deadlineAt, at: body.now },
          dataOf({ bytes: body.bytes, dataOffset: body.dataOffset }),
        );
  const applied = newBody === undefined ? 'timing_only' : 'full';
  const moved = await rescheduleDelivery(
    db,
    {
      reminderId: reminder.reminderId,
      deliveryId: reminder.deliveryId,
      renewalDate: timing.renewalDate,
      noticePeriod: timing.noticePeriod,
      deadlinePeriod: timing.deadline,
      deadlineGivenAt: timing.deadlineAt,
      timeZone: due.timeZone,
      dueAt: due.dueAt,
      deadlineAt: due.deadlineAt,
      // Once an attempt was made it is settled whether the reminder started late.
      lateStart: reminder.attempt === 0 ? due.dueAt < body.now : reminder.lateStart,
      dueProof: due.proof,
      body: newBody,
      actor: change.actor,
      timeoutMs: change.timeoutMs,
      trail: JSON.stringify({
        reminder_id: reminder.reminderId,
        revision: reminder.revision + 1,
        applied,
        ...change.detail,
        from: describe(reminder),
        to: describe({ ...timing, dueAt: due.dueAt, deadlineAt: due.deadlineAt }),
        body_sha256: newBody?.sha256.toString('hex'),
        due_proof: due.proof,
      }),
    },
    change.event,
  );
  return { applied, moved };
}

/** Whether the body was sent, or its hash stands in an audit record: a cycle that ended has one, attempted or not. */
function isFrozen({ attempt, cycle }: Reminder): boolean {
  return attempt > 0 || cycle > 1;
}

/** Whether the stored body says the timing that is in force. */
export function appliedBefore(reminder: Reminder, { bytes, dataOffset }: StoredBody): Applied {
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
