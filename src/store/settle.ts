import { LAST_CALL_MARGIN_MS } from '../domain/retry.ts';
import { boolArray, floatArray, intArray, textArray } from './binary-arrays.ts';
import { clockAfter } from './clock.ts';
import { kindOf } from './kind.ts';
import type { Queryable } from './pool.ts';
import type { Settled, Settlement } from './settlement.ts';

/** What a delivery rests at least from the second such attempt on, before that is doubled. */
const SHORTEST_REST_MS = 1_000;
/** After each attempt of a cycle that was not sent, a delivery rests twice as long, up to this. */
const LONGEST_REST_MS = 15 * 60_000;

// Batches are joined to tables row by row (lateral) and never to each other: the planner takes any batch for ten rows,
// and a plan that it made while a table was small is kept when the table has grown.
const SETTLE = `
with result as (
  select r.delivery_id, r.attempt, r.revision, r.decision, r.outcome, r.endpoint_failed, r.gone, r.handed_back,
         r.dead_reason, r.delay_ms, r.started_ago_ms, r.finished_ago_ms, r.duration_ms, r.status, r.error,
         r.error_detail, r.retry_after_seconds, r.retry_after_clamped, r.response_excerpt, r.trail,
         coalesce(r.shadow, false) as shadow
    from unnest(
           $1::text[], $2::int[], $3::int[], $4::text[], $5::text[], $6::bool[], $7::bool[], $8::bool[],
           $9::text[], $10::float8[], $11::float8[], $12::float8[], $13::int[], $14::int[], $15::text[],
           $16::text[], $17::int[], $18::bool[], $19::text[], $20::text[], $23::bool[])
         as r (delivery_id, attempt, revision, decision, outcome, endpoint_failed, gone, handed_back,
               dead_reason, delay_ms, started_ago_ms, finished_ago_ms, duration_ms, status, error,
               error_detail, retry_after_seconds, retry_after_clamped, response_excerpt, trail, shadow)
   order by r.delivery_id
), locked as (
  select r.*, d.state, d.latest_attempt, d.latest_revision, d.claim_expires_at, d.endpoint_id, d.kind,
         d.due_at, d.contract_ref, d.unsent_attempts, d.uncounted
    from result r
   cross join lateral (
     select state, attempt as latest_attempt, revision as latest_revision, claim_expires_at, endpoint_id,
            due_at, contract_ref, unsent_attempts,
            attempt_base + manual_attempts + unsent_attempts as uncounted, ${kindOf('delivery')} as kind
       from delivery
      where delivery_id = r.delivery_id
        for no key update) d
), judged as (
  select l.*, a.url,
         l.state = 'in_flight' and l.latest_attempt = l.attempt as holds,
         -- Decided under a time that has moved since: given up for want of time, or of attempts that there are anew.
         case
           when l.decision <> 'give_up' or l.latest_revision = l.revision then l.decision
           when l.dead_reason = 'deadline_passed' then 'retry'
           when l.dead_reason = 'attempts_exhausted' and l.attempt <= l.uncounted
           then case when l.outcome = 'unknown' then 'lapse' else 'retry' end
           else l.decision
         end as verdict,
         l.state in ('due', 'held', 'in_flight') as alive,
         a.url is not null
           and case
                 when l.outcome = 'unknown'
                 then l.state = 'in_flight' and l.latest_attempt = l.attempt
                      and (l.handed_back or l.claim_expires_at <= now())
                 else a.outcome is null or (a.outcome = 'unknown' and not a.late)
               end as fresh
    from locked l
    left join lateral (
      select url, outcome, late
        from attempt
       where delivery_id = l.delivery_id
         and attempt = l.attempt
         and kind = l.kind
       -- As it is under the lock, which may have been waited for, and not as it was when the statement began.
         for no key update) a on true
), decided as (
  select j.*,
         j.handed_back and j.error is not distinct from 'not_sent' as unsent,
         coalesce(j.delay_ms, 1000) as wait_ms,
         case
           when not j.fresh then 'repeat'
           when j.holds then j.verdict
           when j.alive and j.decision = 'deliver' then 'deliver_late'
           else 'late_result'
         end as event
    from judged j
), ${clockAfter('decided')}, moved as (
  update delivery d
     set state = case
           when x.event in ('deliver', 'deliver_late') then 'delivered'
           when x.event = 'give_up' then 'dead_lettered'
           when x.event = 'late_result' then d.state
           when e.status = 'active' and not x.gone then 'due'
           else 'held'
         end,
         due_at = case
           when x.event in ('deliver', 'deliver_late', 'give_up') then null
           when x.event = 'late_result' then d.due_at
           else greatest(
             least(
               now() + interval '1 millisecond' * case
                 -- It takes nothing from the attempts of the policy, so that without this a fault that lasts would
                 -- write attempts at the same rate for ever.
                 when x.unsent
                 then greatest(
                   x.wait_ms,
                   least(
                     -- At once, too, is at once only the first time.
                     greatest(x.wait_ms, case when x.unsent_attempts > 0 then ${SHORTEST_REST_MS} else 0 end)
                       * power(2, least(x.unsent_attempts, 20)),
                     ${LONGEST_REST_MS}))
                 else x.wait_ms
               end,
               d.deadline_at - ($22 + ${LAST_CALL_MARGIN_MS}) * interval '1 millisecond'),
             -- It may have been moved to later while the attempt was under way.
             d.scheduled_at,
             now() + least(x.wait_ms, 1000) * interval '1 millisecond')
         end,
         ended_at = case when x.event in ('deliver', 'deliver_late', 'give_up') then c.at else d.ended_at end,
         dead_reason = case when x.event = 'give_up' then x.dead_reason when x.event = 'late_result' then d.dead_reason end,
         -- What nobody was sent takes nothing from the attempts that the policy gives.
         unsent_attempts = d.unsent_attempts + x.unsent::int,
         claim_expires_at = case when x.event = 'late_result' then d.claim_expires_at end,
         claimed_by = case when x.event = 'late_result' then d.claimed_by end,
         trail_length = d.trail_length + 1,
         trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, c.at, x.event, $21, x.trail)
    from decided x, endpoint e, clock c
   -- A list, which the planner takes for one row: it then looks up what is updated instead of joining whole tables.
   where x.event in ('deliver', 'deliver_late', 'retry', 'give_up', 'lapse', 'late_result')
     and d.delivery_id = x.delivery_id
     and e.endpoint_id = x.endpoint_id
  returning d.delivery_id, d.attempt as latest_attempt, d.state, d.due_at, d.endpoint_id, d.contract_ref, d.cycle,
            d.attempt_base, d.dead_reason, d.idempotency_key, d.scheduled_at, d.deadline_at, d.revision,
            d.trail_length, d.trail_sha256, coalesce(d.reminder_id, d.event_id) as source_id, x.kind, x.attempt,
            x.event, x.holds, x.url, x.trail, x.outcome, x.endpoint_failed, x.gone, x.status, x.error, x.error_detail,
            x.started_ago_ms, x.finished_ago_ms, x.duration_ms, x.retry_after_seconds, x.retry_after_clamped,
            x.response_excerpt, x.shadow, c.at
), closed as (
  update attempt a
     set outcome = m.outcome,
         late = not m.holds,
         status = m.status,
         error = m.error,
         detail = m.error_detail,
         started_at = now() - m.started_ago_ms * interval '1 millisecond',
         finished_at = now() - coalesce(m.finished_ago_ms, 0) * interval '1 millisecond',
         duration_ms = m.duration_ms,
         retry_after_seconds = m.retry_after_seconds,
         retry_after_clamped = m.retry_after_clamped,
         next_due_at = case when m.event in ('retry', 'lapse') then m.due_at end,
         response_excerpt = m.response_excerpt,
         shadow = m.shadow
    from moved m
   where a.delivery_id = m.delivery_id
     and a.attempt = m.attempt
     and a.kind = m.kind
), told as (
  insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
  select m.kind, m.delivery_id, m.trail_length, m.at, m.event, $21, m.trail, m.trail_sha256
    from moved m
), audited as (
  insert into audit_record (
    kind, delivery_id, cycle, contract_ref, endpoint_id, endpoint_url, state, dead_reason, idempotency_key,
    body_sha256, attempts, first_attempt_at, finished_at, due_at, deadline_at, revision, in_time, actor,
    trail_length, trail_sha256, shadow)
  select m.kind, m.delivery_id, m.cycle, m.contract_ref, m.endpoint_id, m.url, m.state, m.dead_reason,
         m.idempotency_key, b.sha256, m.latest_attempt - m.attempt_base,
         case
           when m.attempt = m.attempt_base + 1 then now() - m.started_ago_ms * interval '1 millisecond'
           else (
             select coalesce(first.started_at, first.claimed_at)
               from attempt first
              where first.delivery_id = m.delivery_id
                and first.attempt = m.attempt_base + 1
                and first.kind = m.kind)
         end,
         m.at, m.scheduled_at, m.deadline_at, m.revision,
         m.state = 'delivered' and (m.deadline_at is null or m.at < m.deadline_at), $21,
         m.trail_length, m.trail_sha256, m.shadow
    from moved m
    join body b on b.source_id = m.source_id
   where m.event in ('deliver', 'deliver_late', 'give_up')
), noticed as (
  insert into notice (name, body)
  select 'delivery.dead_lettered',
         jsonb_build_object('delivery_id', m.delivery_id, 'contract_ref', m.contract_ref, 'dead_reason', m.dead_reason)
    from moved m
   where m.event = 'give_up'
), score as (
  select endpoint_id,
         count(*) filter (where endpoint_failed)::int as failures,
         bool_or(outcome = 'delivered') as succeeded,
         bool_or(gone and event <> 'late_result') as gone
    from moved
   group by endpoint_id
), touched as (
  select e.endpoint_id, s.failures, s.succeeded, s.gone and e.status <> 'disabled' as disable
    from endpoint e
    join score s on s.endpoint_id = e.endpoint_id
   where s.failures > 0
      or s.gone
      or (s.succeeded and e.consecutive_failures > 0)
   order by e.endpoint_id
     for no key update of e
), scored as (
  update endpoint e
     set consecutive_failures = case when t.succeeded then 0 else e.consecutive_failures + t.failures end,
         status = case when t.disable then 'disabled' else e.status end,
         status_reason = case when t.disable then 'gone' else e.status_reason end,
         revision = e.revision + case when t.disable then 1 else 0 end,
         updated_at = case when t.disable then now() else e.updated_at end
    from touched t
   where e.endpoint_id = t.endpoint_id
), operated as (
  insert into operation (subject_id, event, actor, detail)
  select t.endpoint_id, 'endpoint.disabled', $21, jsonb_build_object('reason', 'gone')
    from touched t
   where t.disable
), announced as (
  insert into notice (name, body)
  select 'endpoint.disabled', jsonb_build_object('endpoint_id', t.endpoint_id)
    from touched t
   where t.disable
)
select m.delivery_id, m.attempt, case when m.event in ('deliver_late', 'late_result') then 'late' else 'applied' end as effect,
       m.state, m.latest_attempt, 1000 * extract(epoch from m.due_at - now())::float8 as remaining_ms,
       m.contract_ref, m.endpoint_id, t.endpoint_id is not null as disabled_endpoint
  from moved m
  left join (select endpoint_id from touched where disable) t on t.endpoint_id = m.endpoint_id
union all
-- The answer to its first writing was lost: what followed from it may not have been done.
select x.delivery_id, x.attempt, x.event, x.state, x.latest_attempt,
       1000 * extract(epoch from x.due_at - now())::float8, x.contract_ref, x.endpoint_id, x.gone
  from decided x
 where x.event = 'repeat'`;

interface Row {
  readonly delivery_id: string;
  readonly attempt: number;
  readonly effect: Settled['effect'];
  readonly state: string;
  readonly latest_attempt: number;
  readonly remaining_ms: number | null;
  readonly contract_ref: string | null;
  readonly endpoint_id: string;
  readonly disabled_endpoint: boolean;
}

/**
 * Writes, in one statement and so in one commit, the results of a batch of attempts and all that follows from them:
 * the attempt, the delivery's state and next due time, the endpoint's counters, the trail entry, and the audit record
 * and notice of those that ended.
 *
 * A result whose claim has lapsed changes its own attempt row, and its delivery only if it is a 2xx and the delivery
 * has not ended. A result that is stored already changes nothing. A delivery id may occur once in a batch.
 */
export async function settleAttempts(
  db: Queryable,
  settlements: readonly Settlement[],
  by: { readonly holder: string; readonly timeoutMs: number },
): Promise<Settled[]> {
  const of = <T>(pick: (s: Settlement) => T): T[] => settlements.map(pick);
  const result = await db.query<Row>({
    name: 'settle_attempts',
    text: SETTLE,
    values: [
      textArray(of((s) => s.deliveryId)),
      intArray(of((s) => s.attempt)),
      intArray(of((s) => s.revision)),
      textArray(of((s) => s.decision)),
      textArray(of((s) => s.outcome)),
      boolArray(of((s) => s.endpointFailed)),
      boolArray(of((s) => s.gone)),
      boolArray(of((s) => s.handedBack)),
      textArray(of((s) => s.deadReason)),
      floatArray(of((s) => s.delayMs)),
      floatArray(of((s) => s.startedAgoMs)),
      floatArray(of((s) => s.finishedAgoMs)),
      intArray(of((s) => s.durationMs)),
      intArray(of((s) => s.status)),
      textArray(of((s) => s.error)),
      textArray(of((s) => s.errorDetail)),
      intArray(of((s) => s.retryAfterSeconds)),
      boolArray(of((s) => s.retryAfterClamped)),
      textArray(of((s) => s.responseExcerpt)),
      textArray(of((s) => s.trail)),
      by.holder,
      by.timeoutMs,
      boolArray(of((s) => s.shadow)),
    ],
  });
  return result.rows.map((row) => ({
    deliveryId: row.delivery_id,
    attempt: row.attempt,
    effect: row.effect,
    state: row.state,
    latestAttempt: row.latest_attempt,
    remainingMs: row.remaining_ms ?? undefined,
    contractRef: row.contract_ref ?? undefined,
    endpointId: row.endpoint_id,
    disabledEndpoint: row.disabled_endpoint,
  }));
}
