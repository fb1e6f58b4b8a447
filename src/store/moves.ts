import { TRANSITIONS, type Transition } from '../domain/state.ts';
import { clockAfter } from './clock.ts';
import { kindOf } from './kind.ts';
import type { Queryable } from './pool.ts';

/** Moves that no attempt makes: the passing of a deadline, an endpoint's status, a person. */
export type Move = Extract<
  Transition,
  'miss' | 'hold' | 'release' | 'abandon' | 'cancel' | 'replay' | 'replay_held'
>;

export interface MoveRequest {
  readonly move: Move;
  readonly deliveryIds: readonly string[];
  readonly actor: string;
  /** The trail entry's detail: JSON text, kept to the letter. */
  readonly trail: string;
  /** A replay after the deadline, by a person who insists, runs without one. */
  readonly withoutDeadline?: boolean;
  /** A call's timeout: a miss is only one when no call can end before the deadline. */
  readonly timeoutMs: number;
}

export interface Moved {
  readonly deliveryId: string;
  readonly state: string;
  readonly contractRef: string | undefined;
  /** The attempt that comes next. */
  readonly attempt: number;
  /** Milliseconds until it is due; 0 where nothing will come of it any more. */
  readonly remainingMs: number;
}

const MOVE = `
with locked as (
  select d.delivery_id
    from delivery d
    join delivery seen on seen.delivery_id = d.delivery_id
   where d.delivery_id = any($1)
     and d.state = any($2)
     -- A reschedule that commits after this statement began has another body than the one that is audited below.
     and d.revision = seen.revision
     -- What was erased cannot be sent again; an erasure that commits after this statement began is a trail entry more.
     and ($3 not in ('replay', 'replay_held')
          or d.trail_length = seen.trail_length
             and exists (
               select
                 from body b
                where b.source_id = coalesce(d.reminder_id, d.event_id)
                  and b.bytes is not null))
     and ($3 <> 'miss' or d.deadline_at - $8 * interval '1 millisecond' < now())
   order by d.delivery_id
     for no key update of d
), ${clockAfter('locked')}, moved as (
  update delivery d
     set state = $4,
         due_at = case
           when $4 in ('dead_lettered', 'cancelled') then null
           -- What was cancelled before its time waits for it, as it did.
           when $3 in ('replay', 'replay_held') then greatest(c.at, d.scheduled_at)
           else d.due_at
         end,
         ended_at = case when $4 in ('dead_lettered', 'cancelled') then c.at end,
         dead_reason = case $3 when 'miss' then 'deadline_passed' when 'abandon' then 'endpoint_gone' end,
         cycle = d.cycle + case when $3 in ('replay', 'replay_held') then 1 else 0 end,
         attempt_base = case when $3 in ('replay', 'replay_held') then d.attempt else d.attempt_base end,
         manual_attempts = case when $3 in ('replay', 'replay_held') then 0 else d.manual_attempts end,
         unsent_attempts = case when $3 in ('replay', 'replay_held') then 0 else d.unsent_attempts end,
         deadline_at = case when $7 then null else d.deadline_at end,
         at_risk_at = case when $3 in ('replay', 'replay_held') then null else d.at_risk_at end,
         trail_length = d.trail_length + 1,
         trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, c.at, $3, $5, $6)
    from locked l, clock c
   where d.delivery_id = l.delivery_id
  returning d.delivery_id, d.state, d.due_at, d.endpoint_id, d.contract_ref, d.cycle, d.attempt, d.attempt_base,
            d.dead_reason, d.idempotency_key, d.scheduled_at, d.deadline_at, d.revision, d.ended_at,
            d.trail_length, d.trail_sha256, coalesce(d.reminder_id, d.event_id) as source_id,
            ${kindOf('d')} as kind, c.at
), told as (
  insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
  select m.kind, m.delivery_id, m.trail_length, m.at, $3, $5, $6, m.trail_sha256
    from moved m
), audited as (
  insert into audit_record (
    kind, delivery_id, cycle, contract_ref, endpoint_id, endpoint_url, state, dead_reason, idempotency_key,
    body_sha256, attempts, first_attempt_at, finished_at, due_at, deadline_at, revision, in_time, actor,
    trail_length, trail_sha256)
  select m.kind, m.delivery_id, m.cycle, m.contract_ref, m.endpoint_id, e.url, m.state, m.dead_reason,
         m.idempotency_key, b.sha256, m.attempt - m.attempt_base,
         (select coalesce(first.started_at, first.claimed_at)
            from attempt first
           where first.delivery_id = m.delivery_id
             and first.attempt = m.attempt_base + 1
             and first.kind = m.kind),
         m.at, m.scheduled_at, m.deadline_at, m.revision, false, $5, m.trail_length, m.trail_sha256
    from moved m
    join body b on b.source_id = m.source_id
    join endpoint e on e.endpoint_id = m.endpoint_id
   where m.ended_at is not null
), noticed as (
  insert into notice (name, body)
  select 'delivery.dead_lettered',
         jsonb_build_object('delivery_id', m.delivery_id, 'contract_ref', m.contract_ref, 'dead_reason', m.dead_reason)
    from moved m
   where m.state = 'dead_lettered'
)
select m.delivery_id, m.state, m.contract_ref, m.attempt + 1 as attempt,
       coalesce(1000 * extract(epoch from m.due_at - m.at)::float8, 0) as remaining_ms
  from moved m
 order by m.due_at, m.delivery_id`;

/**
 * Moves deliveries that are in a state from which the move may start, with a trail entry each, and an audit record and
 * a notice for those that end by it.
 *
 * @returns what moved, in due order; a delivery that is missing was in no such state
 */
export async function moveDeliveries(db: Queryable, request: MoveRequest): Promise<Moved[]> {
  const { from, to } = TRANSITIONS[request.move];
  const result = await db.query<{
    delivery_id: string;
    state: string;
    contract_ref: string | null;
    attempt: number;
    remaining_ms: number;
  }>({
    name: 'move_deliveries',
    text: MOVE,
    values: [
      request.deliveryIds,
      from,
      request.move,
      to,
      request.actor,
      request.trail,
      request.withoutDeadline ?? false,
      request.timeoutMs,
    ],
  });
  return result.rows.map((row) => ({
    deliveryId: row.delivery_id,
    state: row.state,
    contractRef: row.contract_ref ?? undefined,
    attempt: row.attempt,
    remainingMs: row.remaining_ms,
  }));
}
