import { LAST_CALL_MARGIN_MS } from '../domain/retry.ts';
import type { Queryable } from './pool.ts';
import type { NewBody } from './sources.ts';

/** A reminder's new timing, and what of it is written down. */
export interface Reschedule {
  readonly deliveryId: string;
  readonly reminderId: string;
  readonly renewalDate: string;
  readonly noticePeriod: string;
  readonly deadlinePeriod: string | undefined;
  readonly deadlineGivenAt: Date | undefined;
  readonly timeZone: string;
  readonly dueAt: Date;
  readonly deadlineAt: Date;
  readonly lateStart: boolean;
  readonly dueProof: object;
  /** Undefined: the body stays as it is. */
  readonly body: NewBody | undefined;
  readonly actor: string;
  /** The trail entry's detail: JSON text, kept to the letter. */
  readonly trail: string;
  /** How long a call may take: the last one starts that much, and a little more, before the deadline. */
  readonly timeoutMs: number;
}

/** What a wake-up needs to know of a delivery that was rescheduled. */
export interface Rescheduled {
  readonly state: string;
  /** The attempt that comes next. */
  readonly attempt: number;
  readonly contractRef: string | undefined;
  readonly remainingMs: number;
}

/** The body of a reminder, and the instant by the database's clock; `bytes` undefined: erased. */
export interface StoredBody {
  readonly bytes: Buffer | undefined;
  readonly dataOffset: number;
  readonly now: Date;
}

/**
 * Locks a delivery until the transaction ends: nobody claims, settles or moves it meanwhile.
 *
 * Whatever else a change touches is locked after it. What is read of it belongs into a statement of its own, because
 * only that one sees what was committed while this one waited.
 */
export async function lockDelivery(db: Queryable, deliveryId: string): Promise<void> {
  await db.query({
    name: 'lock_delivery',
    text: `
      select delivery_id
        from delivery
       where delivery_id = $1
         for no key update`,
    values: [deliveryId],
  });
}

/** The stored body of a reminder. */
export async function findBody(db: Queryable, reminderId: string): Promise<StoredBody | undefined> {
  const result = await db.query<{ bytes: Buffer | null; data_offset: number; now: Date }>({
    name: 'find_body',
    text: `
      select bytes, data_offset, clock_timestamp() as now
        from body
       where source_id = $1`,
    values: [reminderId],
  });
  const row = result.rows[0];
  return row && { bytes: row.bytes ?? undefined, dataOffset: row.data_offset, now: row.now };
}

/** The request of the reschedule that was carried out under a key, as its trail entry has it; undefined: there is none. */
export async function findRescheduleRequest(
  db: Queryable,
  deliveryId: string,
  idempotencyKey: string,
): Promise<unknown> {
  const result = await db.query<{ request: unknown }>({
    name: 'find_reschedule_request',
    text: `
      select detail::jsonb -> 'request' as request
        from trail
       where kind = 'reminder'
         and delivery_id = $1
         and event = 'reschedule'
         and detail::jsonb ->> 'idempotency_key' = $2`,
    values: [deliveryId, idempotencyKey],
  });
  return result.rows[0]?.request;
}

/** The reason of the cancellation that was carried out under a key, as its trail entry has it; undefined: there is none. */
export async function findCancelReason(
  db: Queryable,
  deliveryId: string,
  idempotencyKey: string,
): Promise<string | undefined> {
  const result = await db.query<{ reason: string }>({
    name: 'find_cancel_reason',
    text: `
      select detail::jsonb ->> 'reason' as reason
        from trail
       where kind = 'reminder'
         and delivery_id = $1
         and event = 'cancel'
         and detail::jsonb ->> 'idempotency_key' = $2`,
    values: [deliveryId, idempotencyKey],
  });
  return result.rows[0]?.reason;
}

// The clock and not now(): the lock may have been waited for, and the trail's instants follow its order.
const RESCHEDULE = `
with clock as materialized (
  select clock_timestamp() as at
), moved as (
  update delivery d
     set due_at = case
           -- The claim is looked after by the instant at which it was due; what settles it reads scheduled_at.
           when d.state = 'in_flight' then d.due_at
           -- It waits for its next attempt: not before the new time, and not past the new last call.
           when d.due_at > d.scheduled_at
           then greatest($9, least(d.due_at, $10::timestamptz - $16 * interval '1 millisecond'))
           else $9
         end,
         scheduled_at = $9,
         deadline_at = $10,
         at_risk_at = null,
         -- What was attempted for a former time, or is about to be, takes nothing from what the policy gives for one ahead.
         manual_attempts = case
           when $9 > c.at then d.attempt - d.attempt_base - d.unsent_attempts
           else d.manual_attempts
         end,
         revision = d.revision + 1,
         trail_length = d.trail_length + 1,
         trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, c.at, $17, $14, $15)
    from clock c
   where d.delivery_id = $1
     and d.ended_at is null
  returning d.delivery_id, d.state, d.attempt, d.contract_ref, d.due_at, d.trail_length, d.trail_sha256, c.at
), followed as (
  update reminder r
     set renewal_date = $3::date,
         notice_period = $4,
         deadline_period = $5,
         deadline_given_at = $6,
         time_zone = $7,
         late_start = $8,
         due_at = $9,
         deadline_at = $10,
         due_proof = $11,
         revision = r.revision + 1,
         updated_at = m.at
    from moved m
   where r.reminder_id = $2
), embodied as (
  update body b
     set bytes = $12,
         sha256 = $13,
         data_offset = $18
    from moved m
   where b.source_id = $2
     and $12::bytea is not null
), told as (
  insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
  select 'reminder', m.delivery_id, m.trail_length, m.at, $17, $14, $15, m.trail_sha256
    from moved m
)
select m.state, m.attempt, m.contract_ref, 1000 * extract(epoch from m.due_at - m.at)::float8 as remaining_ms
  from moved m`;

/**
 * Writes a reminder's new timing: delivery, reminder, body and trail entry; the caller holds the delivery's lock.
 *
 * @param event  what the trail calls it
 * @returns undefined: it has ended
 */
export async function rescheduleDelivery(
  db: Queryable,
  to: Reschedule,
  event: 'reschedule' | 'recalculate',
): Promise<Rescheduled | undefined> {
  const result = await db.query<{
    state: string;
    attempt: number;
    contract_ref: string | null;
    remaining_ms: number;
  }>({
    name: 'reschedule_delivery',
    text: RESCHEDULE,
    values: [
      to.deliveryId,
      to.reminderId,
      to.renewalDate,
      to.noticePeriod,
      to.deadlinePeriod ?? null,
      to.deadlineGivenAt ?? null,
      to.timeZone,
      to.lateStart,
      to.dueAt,
      to.deadlineAt,
      JSON.stringify(to.dueProof),
      to.body?.bytes ?? null,
      to.body?.sha256 ?? null,
      to.actor,
      to.trail,
      to.timeoutMs + LAST_CALL_MARGIN_MS,
      event,
      to.body?.dataOffset ?? null,
    ],
  });
  const row = result.rows[0];
  return (
    row && {
      state: row.state,
      attempt: row.attempt + 1,
      contractRef: row.contract_ref ?? undefined,
      remainingMs: row.remaining_ms,
    }
  );
}
