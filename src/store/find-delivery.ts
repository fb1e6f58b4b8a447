import { DELIVERY_COLUMNS, type Delivery, type DeliveryRow, toDelivery } from './deliveries.ts';
import { kindOf } from './kind.ts';
import type { Queryable } from './pool.ts';

/** One call of a delivery. */
export interface Attempt {
  readonly attempt: number;
  readonly cycle: number;
  /** Undefined: it is under way. */
  readonly outcome: string | undefined;
  readonly late: boolean;
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly detail: string | undefined;
  readonly claimedAt: Date;
  readonly claimedBy: string;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  readonly durationMs: number | undefined;
  readonly url: string;
  readonly retryAfterSeconds: number | undefined;
  readonly retryAfterClamped: boolean;
  readonly nextDueAt: Date | undefined;
  readonly responseExcerpt: string | undefined;
  /** Whether nothing was sent, because the endpoint was in shadow mode. */
  readonly shadow: boolean;
}

interface AttemptRow {
  readonly number: number | null;
  readonly attempt_cycle: number;
  readonly outcome: string | null;
  readonly late: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly detail: string | null;
  readonly attempt_claimed_at: Date;
  readonly attempt_claimed_by: string;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly duration_ms: number | null;
  readonly url: string;
  readonly retry_after_seconds: number | null;
  readonly retry_after_clamped: boolean;
  readonly next_due_at: Date | null;
  readonly response_excerpt: string | null;
  readonly shadow: boolean;
}

function toAttempt(row: AttemptRow, number: number): Attempt {
  return {
    attempt: number,
    cycle: row.attempt_cycle,
    outcome: row.outcome ?? undefined,
    late: row.late,
    status: row.status ?? undefined,
    error: row.error ?? undefined,
    detail: row.detail ?? undefined,
    claimedAt: row.attempt_claimed_at,
    claimedBy: row.attempt_claimed_by,
    startedAt: row.started_at ?? undefined,
    finishedAt: row.finished_at ?? undefined,
    durationMs: row.duration_ms ?? undefined,
    url: row.url,
    retryAfterSeconds: row.retry_after_seconds ?? undefined,
    retryAfterClamped: row.retry_after_clamped,
    nextDueAt: row.next_due_at ?? undefined,
    responseExcerpt: row.response_excerpt ?? undefined,
    shadow: row.shadow,
  };
}

/** A delivery with its attempts, oldest first, as of one instant. */
export async function findDelivery(
  db: Queryable,
  deliveryId: string,
): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | undefined> {
  const result = await db.query<DeliveryRow & AttemptRow>({
    name: 'find_delivery',
    text: `
      select ${DELIVERY_COLUMNS},
             a.attempt as number, a.cycle as attempt_cycle, a.outcome, a.late, a.status, a.error, a.detail,
             a.claimed_at as attempt_claimed_at, a.claimed_by as attempt_claimed_by, a.started_at, a.finished_at,
             a.duration_ms, a.url, a.retry_after_seconds, a.retry_after_clamped, a.next_due_at, a.response_excerpt,
             a.shadow
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
        left join attempt a
          on a.delivery_id = d.delivery_id
         and a.kind = ${kindOf('d')}
       where d.delivery_id = $1
       order by a.attempt`,
    values: [deliveryId],
  });
  const first = result.rows[0];
  if (first === undefined) return undefined;
  return {
    delivery: toDelivery(first),
    attempts: result.rows.flatMap((row) => (row.number === null ? [] : [toAttempt(row, row.number)])),
  };
}
