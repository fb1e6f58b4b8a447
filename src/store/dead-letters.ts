import { DELIVERY_COLUMNS, type Delivery, type DeliveryRow, toDelivery } from './deliveries.ts';
import type { EndpointStatus } from './endpoints.ts';
import type { Queryable } from './pool.ts';

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

const MATCHES = `d.dead_reason is not null
         and ($1::text is null or d.endpoint_id = $1)
         and ($2::text is null or d.dead_reason = $2)
         and ($3::text is null or d.contract_ref = $3)
         and ($4::timestamptz is null or d.ended_at >= $4)
         and ($5::timestamptz is null or d.ended_at < $5)`;

function values(filter: DeadLetterFilter): unknown[] {
  return [
    filter.endpointId ?? null,
    filter.deadReason ?? null,
    filter.contractRef ?? null,
    filter.deadAfter ?? null,
    filter.deadBefore ?? null,
  ];
}

/** After every id there is. */
const NEWEST = 'dlv_~';

/** Dead letters, the newest delivery first, from before `before` (an id; undefined: from the newest). */
export async function listDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<DeadLetter[]> {
  const result = await db.query<
    DeliveryRow & { last_outcome: string | null; last_status: number | null; last_error: string | null }
  >({
    name: 'list_dead_letters',
    text: `
      select ${DELIVERY_COLUMNS},
             a.outcome as last_outcome, a.status as last_status, a.error as last_error
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
        left join attempt a
          on a.delivery_id = d.delivery_id
         and a.attempt = d.attempt
         and a.kind = case when d.reminder_id is null then 'event' else 'reminder' end
       where ${MATCHES}
         and d.delivery_id < $6
       order by d.delivery_id desc
       limit $7`,
    values: [...values(filter), page.before ?? NEWEST, page.limit],
  });
  return result.rows.map((row) => ({
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
  const result = await db.query<{ matched: number; at: Date }>({
    name: 'count_dead_letters',
    text: `
      select count(*)::int as matched, now() as at
        from delivery d
       where ${MATCHES}`,
    values: values(filter),
  });
  return result.rows[0] as { matched: number; at: Date };
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
  const result = await db.query<CandidateRow>({
    name: 'list_replay_candidates',
    text: `
      select d.delivery_id, e.status as endpoint_status,
             coalesce(d.deadline_at - $8 * interval '1 millisecond' < now(), false) as is_too_late
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
       where ${MATCHES}
         and d.delivery_id > $6
       order by d.delivery_id
       limit $7`,
    values: [...values(filter), page.after, page.limit, page.timeoutMs],
  });
  return result.rows.map(toCandidate);
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
