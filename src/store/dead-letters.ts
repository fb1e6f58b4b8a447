import { type Condition, chooseConditions } from './conditions.ts';
import {
  DELIVERY_COLUMNS,
  type Delivery,
  type DeliveryRow,
  IDS_OF_CONTRACT,
  NARROWING,
  toDelivery,
} from './deliveries.ts';
import type { EndpointStatus } from './endpoints.ts';
import { kindOf } from './kind.ts';
import type { Queryable } from './pool.ts';
import { queryList } from './query-list.ts';

/** A delivery that ended without success, with what its latest attempt met. */
export interface DeadLetter {
  readonly delivery: Delivery;
  /** Undefined: no attempt was made. */
  readonly lastOutcome: string | undefined;
  readonly lastStatus: number | undefined;
  readonly lastError: string | undefined;
}

/** Which dead letters; what is undefined does not matter. */
export interface DeadLetterFilter {
  readonly endpointId?: string | undefined;
  readonly deadReason?: string | undefined;
  readonly contractRef?: string | undefined;
  /** Dead from this instant on. */
  readonly deadAfter?: Date | undefined;
  /** Dead before this instant. */
  readonly deadBefore?: Date | undefined;
}

function conditionsOf(filter: DeadLetterFilter): Condition[] {
  return [
    { name: 'endpoint', value: filter.endpointId, text: (p) => `d.endpoint_id = ${p}` },
    { name: 'reason', value: filter.deadReason, text: (p) => `d.dead_reason = ${p}` },
    { name: 'contract', value: filter.contractRef, text: (p) => `d.delivery_id in (${IDS_OF_CONTRACT(p)})` },
    { name: 'after', value: filter.deadAfter, text: (p) => `d.ended_at >= ${p}` },
    { name: 'before', value: filter.deadBefore, text: (p) => `d.ended_at < ${p}` },
  ];
}

/** Dead letters, the newest delivery first, from before `before` (an id; undefined: from the newest). */
export async function listDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<DeadLetter[]> {
  const asked = chooseConditions(
    [{ name: 'page', value: page.before, text: (p) => `d.delivery_id < ${p}` }, ...conditionsOf(filter)],
    [page.limit],
  );
  const rows = await queryList<
    DeliveryRow & { last_outcome: string | null; last_status: number | null; last_error: string | null }
  >(db, {
    narrowing: NARROWING,
    name: `list_dead_letters${asked.suffix}`,
    text: `
      select ${DELIVERY_COLUMNS},
             a.outcome as last_outcome, a.status as last_status, a.error as last_error
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
        left join attempt a
          on a.delivery_id = d.delivery_id
         and a.attempt = d.attempt
         and a.kind = ${kindOf('d')}
       where d.dead_reason is not null
         and ${asked.where}
       order by d.delivery_id desc
       limit $1`,
    values: asked.values,
  });
  return rows.map((row) => ({
    delivery: toDelivery(row),
    lastOutcome: row.last_outcome ?? undefined,
    lastStatus: row.last_status ?? undefined,
    lastError: row.last_error ?? undefined,
  }));
}

/** How many dead letters match, and by the database's clock when that was. */
export async function countDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
): Promise<{ readonly matched: number; readonly at: Date }> {
  const asked = chooseConditions(conditionsOf(filter));
  const rows = await queryList<{ matched: number; at: Date }>(db, {
    narrowing: NARROWING,
    name: `count_dead_letters${asked.suffix}`,
    text: `
      select count(*)::int as matched, now() as at
        from delivery d
       where d.dead_reason is not null
         and ${asked.where}`,
    values: asked.values,
  });
  return rows[0] as { matched: number; at: Date };
}

/** A delivery that somebody wants sent again, and what stands in the way. */
export interface ReplayCandidate {
  readonly deliveryId: string;
  readonly endpointStatus: EndpointStatus;
  /** Whether no call can end before its deadline any more. */
  readonly isTooLate: boolean;
}

interface CandidateRow {
  readonly delivery_id: string;
  readonly endpoint_status: EndpointStatus;
  readonly is_too_late: boolean;
}

function toCandidate(row: CandidateRow): ReplayCandidate {
  return {
    deliveryId: row.delivery_id,
    endpointStatus: row.endpoint_status,
    isTooLate: row.is_too_late,
  };
}

/**
 * The next page of dead letters to replay, the oldest delivery first.
 *
 * @param page.after  an id; empty: from the oldest
 */
export async function listReplayCandidates(
  db: Queryable,
  filter: DeadLetterFilter,
  page: { readonly after: string; readonly limit: number; readonly timeoutMs: number },
): Promise<ReplayCandidate[]> {
  const asked = chooseConditions(conditionsOf(filter), [page.after, page.limit, page.timeoutMs]);
  const rows = await queryList<CandidateRow>(db, {
    narrowing: NARROWING,
    name: `list_replay_candidates${asked.suffix}`,
    text: `
      select d.delivery_id, e.status as endpoint_status,
             coalesce(d.deadline_at - $3 * interval '1 millisecond' < now(), false) as is_too_late
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
       where d.dead_reason is not null
         and d.delivery_id > $1
         and ${asked.where}
       order by d.delivery_id
       limit $2`,
    values: asked.values,
  });
  return rows.map(toCandidate);
}

/** One delivery, in whatever state, as a candidate. */
export async function findReplayCandidate(
  db: Queryable,
  deliveryId: string,
  timeoutMs: number,
): Promise<ReplayCandidate | undefined> {
  const result = await db.query<CandidateRow>({
    name: 'find_replay_candidate',
    text: `
      select d.delivery_id, e.status as endpoint_status,
             coalesce(d.deadline_at - $2 * interval '1 millisecond' < now(), false) as is_too_late
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
       where d.delivery_id = $1`,
    values: [deliveryId, timeoutMs],
  });
  return result.rows[0] && toCandidate(result.rows[0]);
}
