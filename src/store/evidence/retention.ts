import type { Queryable } from '../pool.ts';

/** A month of evidence of a kind that is old enough to be dropped. */
export interface ExpiredMonth {
  readonly kind: 'reminder' | 'event';
  /** `2026-10`. */
  readonly month: string;
  /** Ids of deliveries within it lie between; the first month is open towards the past. */
  readonly lower: string;
  readonly upper: string;
  readonly isOpenToPast: boolean;
  /** Whether dropping began and was not finished, by a process that died. */
  readonly isBegun: boolean;
  readonly wasDropped: boolean;
  /** Within a month. */
  readonly wasDroppedLately: boolean;
}

/** What was removed of a page; last undefined: the end. */
export interface RemovedPage {
  readonly deleted: number;
  readonly last: string | undefined;
}

/** What may be dropped of a kind, and after how long: `10 years`, `365 days`. */
export interface Class {
  readonly kind: 'reminder' | 'event';
  readonly keep: string;
}

/** Months that ended longer ago than evidence is kept, oldest first. */
export async function listExpiredMonths(db: Queryable, { kind, keep }: Class): Promise<ExpiredMonth[]> {
  const result = await db.query<{
    month: string;
    lower: string | null;
    upper: string;
    begun: boolean;
    dropped: boolean;
    lately: boolean;
  }>({
    name: 'list_expired_months',
    text: `
      with part as (
        select replace(right(c.relname, 7), '_', '-') as month, pg_get_expr(c.relpartbound, c.oid) as bounds
          from pg_inherits i
          join pg_class c on c.oid = i.inhrelid
         where i.inhparent = ('trail_' || $1)::regclass
      )
      select p.month, substring(p.bounds from 'FROM \\(''([^'']+)''\\)') as lower,
             substring(p.bounds from 'TO \\(''([^'']+)''\\)') as upper,
             m.begun_at is not null and m.dropped_at is null as begun, m.dropped_at is not null as dropped,
             m.dropped_at is not null and m.dropped_at > now() - interval '1 month' as lately
        from part p
        left join retention_month m on m.kind = $1 and m.month = p.month
       where (p.month || '-01')::timestamp at time zone 'UTC' + interval '1 month' + $2::interval <= now()
       order by p.month`,
    values: [kind, keep],
  });
  return result.rows.map((row) => ({
    kind,
    month: row.month,
    lower: row.lower ?? '',
    upper: row.upper,
    isOpenToPast: row.lower === null,
    isBegun: row.begun,
    wasDropped: row.dropped,
    wasDroppedLately: row.lately,
  }));
}

/** What of a delivery keeps it: it has not ended, or not long enough ago, or its contract is on hold. */
const IS_KEPT = `(
  d.ended_at is null
  or d.ended_at + $4::interval > now()
  or exists (
    select from legal_hold h where h.contract_ref = d.contract_ref and h.released_at is null))`;

/** Looks at the next deliveries of a month: how many must be kept, how many may go; last undefined: the end. */
export async function countExpired(
  db: Queryable,
  page: Class & { readonly after: string; readonly upper: string; readonly limit: number },
): Promise<{ kept: number; expired: number; last: string | undefined }> {
  const result = await db.query<{ kept: number; expired: number; last: string | null }>({
    name: 'count_expired',
    text: `
      with page as (
        select d.delivery_id, (d.reminder_id is not null) = ($3 = 'reminder') as of_kind, ${IS_KEPT} as is_kept
          from delivery d
         where d.delivery_id > $1
           and d.delivery_id < $2
         order by d.delivery_id
         limit $5
      )
      select max(delivery_id) as last,
             count(*) filter (where of_kind and is_kept)::int as kept,
             count(*) filter (where of_kind and not is_kept)::int as expired
        from page`,
    values: [page.after, page.upper, page.kind, page.keep, page.limit],
  });
  const row = result.rows[0];
  return { kept: row?.kept ?? 0, expired: row?.expired ?? 0, last: row?.last ?? undefined };
}

/**
 * Removes the next deliveries of a month that may go, with their reminders, events and bodies, and what of them waits to
 * be sealed; an event goes with its last delivery. What became of them since is looked at again under their locks.
 *
 * The caller holds the lock on holds.
 */
export async function deleteExpired(
  db: Queryable,
  page: Class & { readonly after: string; readonly upper: string; readonly limit: number },
): Promise<RemovedPage> {
  const result = await db.query<{ deleted: number; last: string | null }>({
    name: 'delete_expired',
    text: `
      with page as (
        select d.delivery_id
          from delivery d
         where d.delivery_id > $1
           and d.delivery_id < $2
           and (d.reminder_id is not null) = ($3 = 'reminder')
           and not ${IS_KEPT}
         order by d.delivery_id
         limit $5
           for update
      ), gone as (
        delete from delivery d
         using page p
         where d.delivery_id = p.delivery_id
        returning d.delivery_id, d.reminder_id, d.event_id
      ), queued as (
        delete from unsealed u
         using gone g
         where u.subject_id = g.delivery_id
      ), reminders as (
        delete from reminder r
         using gone g
         where r.reminder_id = g.reminder_id
        returning r.reminder_id as source_id
      ), events as (
        delete from event e
         where e.event_id in (select g.event_id from gone g)
           and not exists (
             select
               from jsonb_array_elements(e.answer) as a
               join delivery d on d.delivery_id = a ->> 'delivery_id'
              where d.delivery_id not in (select g.delivery_id from gone g))
        returning e.event_id as source_id
      ), bodies as (
        delete from body b
         where b.source_id in (select source_id from reminders union all select source_id from events)
      )
      select count(*)::int as deleted, max(delivery_id) as last
        from gone`,
    values: [page.after, page.upper, page.kind, page.keep, page.limit],
  });
  const row = result.rows[0];
  return { deleted: row?.deleted ?? 0, last: row?.last ?? undefined };
}

/**
 * Removes the next events of a month that have no delivery, because no endpoint wanted them.
 *
 * The caller holds the lock on holds.
 */
export async function deleteUnwantedEvents(
  db: Queryable,
  page: { readonly after: string; readonly month: string; readonly limit: number },
): Promise<RemovedPage> {
  const result = await db.query<{ deleted: number; last: string | null }>({
    name: 'delete_unwanted_events',
    text: `
      with page as (
        select e.event_id, e.answer, e.contract_ref
          from event e
         where e.event_id > $1
           and e.event_id < id_lower_bound('evt', ($2 || '-01')::timestamp at time zone 'UTC' + interval '1 month')
         order by e.event_id
         limit $3
      ), gone as (
        delete from event e
         using page p
         where e.event_id = p.event_id
           and not exists (
             select
               from jsonb_array_elements(p.answer) as a
               join delivery d on d.delivery_id = a ->> 'delivery_id')
           and not exists (
             select from legal_hold h where h.contract_ref = p.contract_ref and h.released_at is null)
        returning e.event_id
      ), bodies as (
        delete from body b
         using gone g
         where b.source_id = g.event_id
      )
      select (select count(*) from gone)::int as deleted, (select max(event_id) from page) as last`,
    values: [page.after, page.month, page.limit],
  });
  const row = result.rows[0];
  return { deleted: row?.deleted ?? 0, last: row?.last ?? undefined };
}

/** Notes that dropping a month begins. */
export async function insertRetentionMonth(
  db: Queryable,
  month: Pick<ExpiredMonth, 'kind' | 'month'>,
): Promise<void> {
  await db.query({
    name: 'insert_retention_month',
    text: `
      insert into retention_month (kind, month)
      values ($1, $2)
      on conflict (kind, month) do update
         set begun_at = now(),
             dropped_at = null`,
    values: [month.kind, month.month],
  });
}

/**
 * Drops the partitions of a month; what is left of its deliveries keeps its evidence.
 *
 * @returns the ids of the deliveries that are left
 * @throws when more than `maxKept` are left, or somebody is at the tables for longer than two seconds
 */
export async function dropMonth(
  db: Queryable,
  month: ExpiredMonth & { readonly maxKept: number },
): Promise<string[]> {
  await db.query({
    name: 'drop_month',
    text: 'select drop_month($1, $2, $3)',
    values: [month.kind, month.month, month.maxKept],
  });
  await db.query({
    name: 'mark_month_dropped',
    text: `
      update retention_month
         set dropped_at = now()
       where kind = $1
         and month = $2`,
    values: [month.kind, month.month],
  });
  const result = await db.query<{ delivery_id: string }>({
    name: 'list_left_of_month',
    text: `
      select delivery_id
        from delivery
       where delivery_id >= $2
         and delivery_id < $3
         and (reminder_id is not null) = ($1 = 'reminder')
       order by delivery_id`,
    values: [month.kind, month.lower, month.upper],
  });
  return result.rows.map((row) => row.delivery_id);
}
