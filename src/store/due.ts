import type { State } from '../domain/state.ts';
import type { Queryable } from './pool.ts';
import { URGENT_MS } from './urgent.ts';

/** A delivery that wants a wake-up, and when. */
export interface DueDelivery {
  readonly deliveryId: string;
  readonly contractRef: string | undefined;
  readonly attempt: number;
  readonly remainingMs: number;
}

/** A position in the order in which deliveries fall due; the instant as the database writes it, to the microsecond. */
export interface Position {
  readonly dueAt: string;
  readonly deliveryId: string;
}

interface Row {
  readonly delivery_id: string;
  readonly contract_ref: string | null;
  readonly attempt: number;
  readonly remaining_ms: number;
  readonly due_text: string;
}

function toDue(row: Row): DueDelivery {
  return {
    deliveryId: row.delivery_id,
    contractRef: row.contract_ref ?? undefined,
    attempt: row.attempt + 1,
    remainingMs: row.remaining_ms,
  };
}

function lastPosition(rows: readonly Pick<Row, 'due_text' | 'delivery_id'>[]): Position | undefined {
  const last = rows.at(-1);
  return last && { dueAt: last.due_text, deliveryId: last.delivery_id };
}

/** How far wake-ups were published, and how far they are to be: the horizon from now. */
export async function findWatermark(
  db: Queryable,
  horizonMs: number,
): Promise<{ from: Position; to: Position }> {
  const result = await db.query<{ due_text: string; delivery_id: string; to_text: string }>({
    name: 'find_watermark',
    text: `
      select due_at::text as due_text, delivery_id, (now() + $1 * interval '1 millisecond')::text as to_text
        from watermark`,
    values: [horizonMs],
  });
  const row = result.rows[0];
  if (row === undefined) throw new Error('the watermark row is missing: run the migrations');
  return {
    from: { dueAt: row.due_text, deliveryId: row.delivery_id },
    to: { dueAt: row.to_text, deliveryId: '' },
  };
}

/** Moves the watermark forward from where its caller found it; false: it is elsewhere by now, or `to` is no way forward. */
export async function moveWatermark(
  db: Queryable,
  { from, to }: { readonly from: Position; readonly to: Position },
): Promise<boolean> {
  const result = await db.query({
    name: 'move_watermark',
    text: `
      update watermark
         set due_at = $1::timestamptz,
             delivery_id = $2,
             moved_at = now()
       where (due_at, delivery_id) = ($3::timestamptz, $4)
         and (due_at, delivery_id) < ($1::timestamptz, $2)`,
    values: [to.dueAt, to.deliveryId, from.dueAt, from.deliveryId],
  });
  return result.rowCount === 1;
}

/**
 * Moves the watermark back to now, so that every wake-up within the horizon is published again: what was published
 * before is gone (a purge, the loss of the broker). A feeder at work notices and begins anew with its next pass.
 */
export async function resetWatermark(db: Queryable): Promise<void> {
  await db.query({
    name: 'reset_watermark',
    text: `update watermark set due_at = now(), delivery_id = '', moved_at = now()`,
    values: [],
  });
}

/** The next page of deliveries that fall due after a position, up to another. */
export async function listDueAfter(
  db: Queryable,
  page: { readonly after: Position; readonly to: Position; readonly limit: number },
): Promise<{ due: DueDelivery[]; last: Position | undefined }> {
  const result = await db.query<Row>({
    name: 'list_due_after',
    text: `
      select delivery_id, contract_ref, attempt, due_at::text as due_text,
             1000 * extract(epoch from due_at - now())::float8 as remaining_ms
        from delivery
       where due_at is not null
         and (due_at, delivery_id) > ($1::timestamptz, $2)
         and due_at <= $3::timestamptz
         and state = 'due'
       order by due_at, delivery_id
       limit $4`,
    values: [page.after.dueAt, page.after.deliveryId, page.to.dueAt, page.limit],
  });
  return { due: result.rows.map(toDue), last: lastPosition(result.rows) };
}

/** A delivery that should have moved by now, and what is to be done about it. */
export interface OverdueDelivery extends DueDelivery {
  readonly state: 'due' | 'in_flight' | 'held';
  /**
   * `announce`: due and announced before, or a claim that expired; `miss`: no call can end before its deadline any more;
   * `abandon`: its endpoint is deleted; `release`: held, and its endpoint is active.
   */
  readonly remedy: 'announce' | 'miss' | 'abandon' | 'release';
  /** Whether its deadline is near. */
  readonly urgent: boolean;
}

interface OverdueRow extends Row {
  readonly state: OverdueDelivery['state'];
  readonly remedy: OverdueDelivery['remedy'] | null;
  readonly margin_ms: number | null;
}

/**
 * The next page of deliveries that are overdue by more than the grace, oldest first, without those that are as they should
 * be: under a claim, held at an endpoint that takes nothing, or still to be reached by the feeder.
 *
 * @returns also how long, in milliseconds, nothing is to be done about any of the page, which is all held; 0: there is
 *   something, or not all are
 */
export async function listOverdue(
  db: Queryable,
  page: {
    readonly after: Position | undefined;
    readonly graceMs: number;
    readonly timeoutMs: number;
    readonly limit: number;
  },
): Promise<{ overdue: OverdueDelivery[]; last: Position | undefined; full: boolean; idleMs: number }> {
  const result = await db.query<OverdueRow>({
    name: 'list_overdue',
    text: `
      with page as (
        select delivery_id, contract_ref, endpoint_id, attempt, state, due_at, deadline_at, claim_expires_at
          from delivery
         where due_at is not null
           and (due_at, delivery_id) > (coalesce($1::timestamptz, '-infinity'), $2)
           and due_at < now() - $3 * interval '1 millisecond'
         order by due_at, delivery_id
         limit $5
      )
      select p.delivery_id, p.contract_ref, p.attempt, p.state, p.due_at::text as due_text,
             1000 * extract(epoch from p.due_at - now())::float8 as remaining_ms,
             1000 * extract(epoch from p.deadline_at - now())::float8 as margin_ms,
             case
               when p.state = 'in_flight' then case when p.claim_expires_at < now() then 'announce' end
               when p.deadline_at - $4 * interval '1 millisecond' < now() then 'miss'
               when e.deleted_at is not null then 'abandon'
               when p.state = 'held' then case
                 -- Whoever has just resumed it is still releasing, in due order.
                 when e.status = 'active' and e.updated_at < now() - $3 * interval '1 millisecond' then 'release'
               end
               when (p.due_at, p.delivery_id) <= (select w.due_at, w.delivery_id from watermark w) then 'announce'
             end as remedy
        from page p
        left join endpoint e on e.endpoint_id = p.endpoint_id
       order by p.due_at, p.delivery_id`,
    values: [
      page.after?.dueAt ?? null,
      page.after?.deliveryId ?? '',
      page.graceMs,
      page.timeoutMs,
      page.limit,
    ],
  });
  return {
    overdue: result.rows.flatMap((row) =>
      row.remedy === null
        ? []
        : [
            {
              ...toDue(row),
              state: row.state,
              remedy: row.remedy,
              urgent: row.margin_ms !== null && row.margin_ms < URGENT_MS,
            },
          ],
    ),
    last: lastPosition(result.rows),
    full: result.rows.length === page.limit,
    idleMs: Math.min(...result.rows.map((row) => idleMsOf(row, page.timeoutMs))),
  };
}

function idleMsOf({ state, remedy, margin_ms: marginMs }: OverdueRow, timeoutMs: number): number {
  if (state !== 'held' || remedy !== null) return 0;
  return marginMs === null ? Number.POSITIVE_INFINITY : marginMs - timeoutMs;
}

/**
 * The next of an endpoint's deliveries in any of these states, in due order: those among so many living deliveries of all
 * endpoints from a position on, so that no statement takes long however much waits elsewhere.
 *
 * @returns also where to go on; undefined: there are no more
 */
export async function listPendingOfEndpoint(
  db: Queryable,
  page: {
    readonly endpointId: string;
    readonly states: readonly State[];
    readonly after: Position | undefined;
    /** How many are looked at. */
    readonly limit: number;
  },
): Promise<{ deliveryIds: string[]; next: Position | undefined }> {
  const result = await db.query<{
    delivery_id: string;
    due_text: string;
    is_pending: boolean;
    is_last: boolean;
  }>({
    name: 'list_pending_of_endpoint',
    text: `
      with page as (
        select delivery_id, due_at,
               endpoint_id = $1 and state = any($2) as is_pending,
               row_number() over (order by due_at, delivery_id) = $5 as is_last
          from delivery
         where due_at is not null
           and (due_at, delivery_id) > (coalesce($3::timestamptz, '-infinity'), $4)
         order by due_at, delivery_id
         limit $5
      )
      select delivery_id, due_at::text as due_text, is_pending, is_last
        from page
       where is_pending
          or is_last
       order by due_at, delivery_id`,
    values: [
      page.endpointId,
      page.states,
      page.after?.dueAt ?? null,
      page.after?.deliveryId ?? '',
      page.limit,
    ],
  });
  const { rows } = result;
  return {
    deliveryIds: rows.filter((row) => row.is_pending).map((row) => row.delivery_id),
    next: rows.at(-1)?.is_last ? lastPosition(rows) : undefined,
  };
}
