import { clockAfter } from '../clock.ts';
import type { Position } from '../due.ts';
import { kindOf } from '../kind.ts';
import type { Queryable } from '../pool.ts';

/** A delivery with a deadline that might be at risk, with what decides it. */
export interface RiskCandidate {
  readonly deliveryId: string;
  readonly kind: 'reminder' | 'event';
  readonly state: 'due' | 'held';
  readonly attempts: number;
  readonly marginMs: number;
  readonly overdueMs: number;
  readonly failures: number;
  /** As stored; undefined: the default. */
  readonly policy: unknown;
}

interface CandidateRow {
  readonly delivery_id: string;
  readonly kind: RiskCandidate['kind'];
  readonly state: RiskCandidate['state'];
  readonly attempts: number;
  readonly margin_ms: number;
  readonly overdue_ms: number;
  readonly failures: number;
  readonly policy: unknown;
  readonly due_text: string;
  readonly relevant: boolean;
}

/**
 * The next page of living deliveries that fall due within the horizon; of those, the ones with a deadline that are not
 * flagged yet and that were tried, are late, or have an endpoint that is failing or takes nothing.
 *
 * @returns also how long, in milliseconds, there is nothing to flag in the page, which is all held; 0: not all is
 */
export async function listRiskCandidates(
  db: Queryable,
  page: {
    readonly after: Position | undefined;
    readonly horizonMs: number;
    readonly failingAfter: number;
    readonly limit: number;
  },
): Promise<{ candidates: RiskCandidate[]; last: Position | undefined; full: boolean; idleMs: number }> {
  const result = await db.query<CandidateRow>({
    name: 'list_risk_candidates',
    text: `
      with page as (
        select delivery_id, reminder_id, endpoint_id, state, due_at, deadline_at, at_risk_at,
               attempt - attempt_base - manual_attempts - unsent_attempts as attempts
          from delivery
         where due_at is not null
           and (due_at, delivery_id) > (coalesce($1::timestamptz, '-infinity'), $2)
           and due_at < now() + $3 * interval '1 millisecond'
         order by due_at, delivery_id
         limit $5
      )
      select p.delivery_id, ${kindOf('p')} as kind, p.state,
             p.attempts,
             1000 * extract(epoch from p.deadline_at - now())::float8 as margin_ms,
             1000 * extract(epoch from now() - p.due_at)::float8 as overdue_ms,
             e.consecutive_failures as failures, e.policy, p.due_at::text as due_text,
             p.deadline_at is not null
               and p.at_risk_at is null
               and p.state in ('due', 'held')
               and (p.state = 'held' or p.due_at < now() or p.attempts > 0 or e.consecutive_failures >= $4)
               as relevant
        from page p
        join endpoint e on e.endpoint_id = p.endpoint_id
       order by p.due_at, p.delivery_id`,
    values: [
      page.after?.dueAt ?? null,
      page.after?.deliveryId ?? '',
      page.horizonMs,
      page.failingAfter,
      page.limit,
    ],
  });
  const last = result.rows.at(-1);
  return {
    candidates: result.rows.filter((row) => row.relevant).map(toCandidate),
    last: last && { dueAt: last.due_text, deliveryId: last.delivery_id },
    full: result.rows.length === page.limit,
    idleMs: result.rows.every((row) => row.state === 'held' && !row.relevant) ? Number.POSITIVE_INFINITY : 0,
  };
}

function toCandidate(row: CandidateRow): RiskCandidate {
  return {
    deliveryId: row.delivery_id,
    kind: row.kind,
    state: row.state,
    attempts: row.attempts,
    marginMs: row.margin_ms,
    overdueMs: row.overdue_ms,
    failures: row.failures,
    policy: row.policy ?? undefined,
  };
}

export interface Flagged {
  readonly deliveryId: string;
  readonly contractRef: string | undefined;
  readonly endpointId: string;
  readonly deadlineAt: Date;
}

/**
 * Flags deliveries as at risk, once per cycle, with a trail entry and a notice each. Those that are being attempted at
 * this moment are left for later.
 *
 * @returns what was flagged
 */
export async function flagAtRisk(
  db: Queryable,
  request: {
    /** The trail entry's detail is JSON text, kept to the letter. */
    readonly deliveries: readonly { readonly deliveryId: string; readonly trail: string }[];
    readonly actor: string;
  },
): Promise<Flagged[]> {
  const result = await db.query<{
    delivery_id: string;
    contract_ref: string | null;
    endpoint_id: string;
    deadline_at: Date;
  }>({
    name: 'flag_at_risk',
    text: `
      with asked as (
        select delivery_id, trail
          from unnest($1::text[], $2::text[]) as a (delivery_id, trail)
      ), locked as (
        select d.delivery_id
          from delivery d
         where d.delivery_id = any($1)
           and d.state in ('due', 'held')
           and d.deadline_at is not null
           and d.at_risk_at is null
         order by d.delivery_id
           for no key update skip locked
      ), ${clockAfter('locked')}, flagged as (
        update delivery d
           set at_risk_at = c.at,
               trail_length = d.trail_length + 1,
               trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, c.at, 'at_risk', $3, a.trail)
          from locked l
          join asked a on a.delivery_id = l.delivery_id
         cross join clock c
         where d.delivery_id = l.delivery_id
        returning d.delivery_id, d.contract_ref, d.endpoint_id, d.deadline_at, d.trail_length, d.trail_sha256, a.trail,
                  ${kindOf('d')} as kind, c.at
      ), told as (
        insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
        select kind, delivery_id, trail_length, at, 'at_risk', $3, trail, trail_sha256
          from flagged
      ), noticed as (
        insert into notice (name, body)
        select 'delivery.at_risk', jsonb_build_object('delivery_id', delivery_id, 'contract_ref', contract_ref)
          from flagged
      )
      select delivery_id, contract_ref, endpoint_id, deadline_at
        from flagged
       order by deadline_at, delivery_id`,
    values: [
      request.deliveries.map((d) => d.deliveryId),
      request.deliveries.map((d) => d.trail),
      request.actor,
    ],
  });
  return result.rows.map((row) => ({
    deliveryId: row.delivery_id,
    contractRef: row.contract_ref ?? undefined,
    endpointId: row.endpoint_id,
    deadlineAt: row.deadline_at,
  }));
}

/** A delivery that may miss its deadline, for people. */
export interface AtRisk {
  readonly deliveryId: string;
  readonly contractRef: string | undefined;
  readonly endpointName: string;
  readonly state: string;
  readonly deadlineAt: Date;
  readonly marginMs: number;
}

/** Flagged deliveries that have not ended, the nearest deadline first. */
export async function listAtRisk(db: Queryable, limit: number): Promise<AtRisk[]> {
  const result = await db.query<{
    delivery_id: string;
    contract_ref: string | null;
    endpoint_name: string;
    state: string;
    deadline_at: Date;
    margin_ms: number;
  }>({
    name: 'list_at_risk',
    text: `
      select d.delivery_id, d.contract_ref, e.name as endpoint_name, d.state, d.deadline_at,
             1000 * extract(epoch from d.deadline_at - now())::float8 as margin_ms
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
       where d.at_risk_at is not null
         and d.due_at is not null
         and d.deadline_at is not null
       order by d.deadline_at, d.delivery_id
       limit $1`,
    values: [limit],
  });
  return result.rows.map((row) => ({
    deliveryId: row.delivery_id,
    contractRef: row.contract_ref ?? undefined,
    endpointName: row.endpoint_name,
    state: row.state,
    deadlineAt: row.deadline_at,
    marginMs: row.margin_ms,
  }));
}
