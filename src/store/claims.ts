import { intArray, textArray } from './binary-arrays.ts';
import { kindOf } from './kind.ts';
import type { Queryable } from './pool.ts';
import { URGENT_MS } from './urgent.ts';
import type { Claim, Verdict } from './verdict.ts';

/** A wake-up that asks for a claim, and the bounds under which one is given. */
export interface ClaimRequest {
  readonly wakeUps: readonly { readonly deliveryId: string; readonly attempt: number }[];
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** Whoever holds the claims: unique per process. */
  readonly holder: string;
  readonly maxPerEndpoint: number;
  /** Deliveries whose claims this holder knows that it holds, asked when the answer is there. */
  readonly inHand: Pick<ReadonlySet<string>, 'has'>;
  /** By endpoint id, what counts against its limit at this holder. */
  readonly taken: ReadonlyMap<string, number>;
}

/** So many failures in a row, and an endpoint is called one at a time. */
const PROBED_AFTER = 10;

const CLAIM = `
with wake as (
  select delivery_id, attempt
    from unnest($1::text[], $2::int[]) as w (delivery_id, attempt)
), busy as (
  select endpoint_id, taken
    from unnest($3::text[], $4::int[]) as b (endpoint_id, taken)
), asked as (
  select d.delivery_id, d.state, d.attempt, w.attempt as asked, d.due_at, d.claim_expires_at, d.deadline_at,
         d.endpoint_id, d.revision, e.revision as endpoint_revision, e.url, d.reminder_id,
         d.attempt_base + d.manual_attempts + d.unsent_attempts as attempt_base,
         d.claimed_by = $8 as ours,
         e.consecutive_failures >= ${PROBED_AFTER} as probed,
         case when e.consecutive_failures >= ${PROBED_AFTER} then 1 else coalesce(e.max_in_flight, $5) end as most,
         coalesce(b.taken, 0) as taken,
         case
           when d.due_at is null then 'ended'
           when d.state = 'held' or d.attempt > w.attempt then 'nothing'
           when d.state = 'in_flight' and d.claim_expires_at <= now() then 'lapsed'
           when d.state = 'in_flight' then 'wait'
           when d.attempt = w.attempt then 'nothing'
           when d.due_at > now() then 'wait'
           when d.deadline_at - $6 * interval '1 millisecond' < now() then 'missed'
           when e.status <> 'active' then 'unreachable'
           else 'ready'
         end as verdict
    from wake w
    join delivery d on d.delivery_id = w.delivery_id
    join endpoint e on e.endpoint_id = d.endpoint_id
    left join busy b on b.endpoint_id = d.endpoint_id
), ready as (
  -- A share of an endpoint's places is kept for what is near its deadline; bulk does not fill it.
  select delivery_id, revision,
         most - taken - case when deadline_at < now() + ${URGENT_MS} * interval '1 millisecond' then 0 else most / 8 end as room,
         row_number() over (partition by endpoint_id order by deadline_at nulls last, due_at) as place
    from asked
   where verdict = 'ready'
), winner as (
  select d.delivery_id
    from ready r
    join delivery d on d.delivery_id = r.delivery_id
   where r.place <= r.room
     and d.state = 'due'
     -- Written as no index can serve it: where statistics are from before much fell due, the planner would look for each of
     -- these rows among everything that is due.
     and coalesce(d.due_at, 'infinity') <= now()
     -- A reschedule that commits after this statement began has another body than the one that is read below.
     and d.revision = r.revision
   order by d.delivery_id
     for no key update of d skip locked
), claimed as (
  update delivery d
     set state = 'in_flight',
         attempt = d.attempt + 1,
         claimed_at = now(),
         claim_expires_at = now() + $7 * interval '1 millisecond',
         claimed_by = $8
    from winner w
   where d.delivery_id = w.delivery_id
  returning d.delivery_id, d.reminder_id, d.event_id, d.attempt,
            d.attempt_base + d.manual_attempts + d.unsent_attempts as attempt_base, d.cycle, d.revision, d.idempotency_key, d.contract_ref, d.endpoint_id,
            d.trace_parent
), opened as (
  insert into attempt (kind, delivery_id, attempt, cycle, claimed_at, claimed_by, url)
  select ${kindOf('c')},
         c.delivery_id, c.attempt, c.cycle, now(), $8, a.url
    from claimed c
    join asked a on a.delivery_id = c.delivery_id
)
select a.delivery_id,
       case
         when c.delivery_id is not null then 'claimed'
         when a.verdict = 'ready' and r.place > r.room then 'crowded'
         when a.verdict = 'ready' then 'busy'
         else a.verdict
       end as verdict,
       a.state, a.attempt as known_attempt, a.attempt_base as known_base, a.endpoint_id, a.endpoint_revision,
       a.most, a.probed, a.ours,
       1000 * extract(epoch from (
         case when a.state = 'in_flight' then a.claim_expires_at else a.due_at end) - now())::float8 as remaining_ms,
       1000 * extract(epoch from a.deadline_at - now())::float8 as margin_ms,
       now() as claimed_at,
       c.attempt, c.attempt_base, c.cycle, c.revision, c.idempotency_key, c.contract_ref, c.trace_parent,
       ${kindOf('a')} as kind,
       a.url, b.bytes, b.sha256
  from asked a
  left join ready r on r.delivery_id = a.delivery_id
  left join claimed c on c.delivery_id = a.delivery_id
  left join body b on b.source_id = coalesce(c.reminder_id, c.event_id)`;

interface Row {
  readonly delivery_id: string;
  readonly verdict:
    | 'claimed'
    | 'crowded'
    | 'busy'
    | 'ended'
    | 'nothing'
    | 'lapsed'
    | 'wait'
    | 'missed'
    | 'unreachable';
  readonly state: string;
  readonly known_attempt: number;
  readonly endpoint_id: string;
  readonly endpoint_revision: number;
  readonly known_base: number;
  readonly most: number;
  readonly probed: boolean;
  readonly ours: boolean | null;
  readonly remaining_ms: number;
  readonly margin_ms: number | null;
  readonly claimed_at: Date;
  readonly attempt: number;
  readonly attempt_base: number;
  readonly cycle: number;
  readonly revision: number;
  readonly idempotency_key: string;
  readonly contract_ref: string | null;
  readonly trace_parent: string | null;
  readonly kind: 'reminder' | 'event';
  readonly url: string;
  readonly bytes: Buffer;
  readonly sha256: Buffer;
}

/** How long to leave a row alone that another transaction is changing at this very moment. */
const BUSY_RETRY_MS = 1_000;

/**
 * Claims, in one statement, what may be claimed of a batch of wake-ups, and says of each of the others why not.
 *
 * Exactly one of any number of concurrent callers wins a delivery's attempt; its row in `attempt` commits with the
 * claim. The database's clock decides. Rows locked by somebody else are not waited for.
 *
 * @returns verdicts by delivery id; an id that is missing has no delivery
 */
export async function claimDeliveries(db: Queryable, request: ClaimRequest): Promise<Map<string, Verdict>> {
  const result = await db.query<Row>({
    name: 'claim_deliveries',
    text: CLAIM,
    values: [
      textArray(request.wakeUps.map((w) => w.deliveryId)),
      intArray(request.wakeUps.map((w) => w.attempt)),
      textArray([...request.taken.keys()]),
      intArray([...request.taken.values()]),
      request.maxPerEndpoint,
      request.timeoutMs,
      request.leaseMs,
      request.holder,
    ],
  });
  return new Map(result.rows.map((row) => [row.delivery_id, toVerdict(row, request.inHand)]));
}

function toVerdict(row: Row, inHand: ClaimRequest['inHand']): Verdict {
  switch (row.verdict) {
    case 'claimed':
      return { verdict: 'claimed', claim: toClaim(row) };
    case 'crowded':
      return {
        verdict: 'crowded',
        endpointId: row.endpoint_id,
        limit: row.most,
        probed: row.probed,
        urgent: isUrgent(row),
        marginMs: row.margin_ms ?? undefined,
      };
    case 'busy':
      return toWait(row, BUSY_RETRY_MS);
    case 'wait':
      // A claim of our own that we know nothing of: its commit took effect, its answer was lost.
      if (row.state === 'in_flight' && row.ours === true && !inHand.has(row.delivery_id))
        return toLapsed(row, true);
      return toWait(row, Math.max(0, Math.ceil(row.remaining_ms)));
    case 'lapsed':
      // Its outcome is known here and waits to be written; nobody here calls it a second time meanwhile.
      if (row.ours === true && inHand.has(row.delivery_id)) return toWait(row, BUSY_RETRY_MS);
      return toLapsed(row, false);
    case 'ended':
      return { verdict: 'ended', state: row.state };
    case 'missed':
    case 'unreachable':
    case 'nothing':
      return { verdict: row.verdict };
  }
}

function toWait(row: Row, remainingMs: number): Verdict {
  return {
    verdict: 'wait',
    remainingMs,
    attempt: row.known_attempt + 1,
    isClaimed: row.state === 'in_flight',
  };
}

function isUrgent({ margin_ms }: Row): boolean {
  return margin_ms !== null && margin_ms < URGENT_MS;
}

function toLapsed(row: Row, ours: boolean): Verdict {
  return {
    verdict: 'lapsed',
    attempt: row.known_attempt,
    attemptOfCycle: row.known_attempt - row.known_base,
    kind: row.kind,
    endpointId: row.endpoint_id,
    endpointRevision: row.endpoint_revision,
    hasDeadline: row.margin_ms !== null,
    ours,
  };
}

function toClaim(row: Row): Claim {
  return {
    deliveryId: row.delivery_id,
    kind: row.kind,
    attempt: row.attempt,
    attemptBase: row.attempt_base,
    cycle: row.cycle,
    revision: row.revision,
    endpointId: row.endpoint_id,
    endpointRevision: row.endpoint_revision,
    idempotencyKey: row.idempotency_key,
    contractRef: row.contract_ref ?? undefined,
    traceParent: row.trace_parent ?? undefined,
    claimedAt: row.claimed_at,
    hostClockOffsetMs: Date.now() - row.claimed_at.getTime(),
    overdueMs: -row.remaining_ms,
    marginMs: row.margin_ms ?? undefined,
    limit: row.most,
    urgent: isUrgent(row),
    url: row.url,
    body: row.bytes,
    bodySha256: row.sha256,
  };
}
