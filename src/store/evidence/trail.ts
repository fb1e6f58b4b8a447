import type { TrailEntry } from '../../domain/audit/chain.ts';
import type {
  AttemptRow,
  BodyRow,
  DeliveryFacts,
  DeliveryRow,
  EventRow,
  RecordRow,
  ReminderRow,
} from '../../domain/audit/facts.ts';
import { kindOf } from '../kind.ts';
import type { Queryable } from '../pool.ts';
import { FACT_TYPES } from './fact-types.ts';

type Of<T> = T & { readonly delivery_id: string };

/** Everything that the database says of deliveries, by id; an id that nothing is known of has empty facts. */
export async function findFacts(
  db: Queryable,
  deliveryIds: readonly string[],
): Promise<Map<string, DeliveryFacts>> {
  const [deliveries, trail, attempts, records] = [
    await listRows<DeliveryRow>(db, 'facts_delivery', DELIVERY, deliveryIds),
    await listRows<Of<TrailEntry>>(db, 'facts_trail', TRAIL, deliveryIds),
    await listRows<Of<AttemptRow>>(db, 'facts_attempt', ATTEMPT, deliveryIds),
    await listRows<RecordRow>(db, 'facts_record', RECORD, deliveryIds),
  ];
  const sourceIds = [...new Set(deliveries.map((d) => d.source_id))];
  const sources = new Map<string, ReminderRow | EventRow>();
  for (const row of await listRows<ReminderRow>(db, 'facts_reminder', REMINDER, sourceIds))
    sources.set(row.reminder_id, row);
  for (const row of await listRows<EventRow>(db, 'facts_event', EVENT, sourceIds))
    sources.set(row.event_id, row);
  const bodies = new Map(
    (await listRows<BodyRow & { source_id: string }>(db, 'facts_body', BODY, sourceIds)).map(
      ({ source_id, ...body }) => [source_id, body] as const,
    ),
  );
  const delivery = new Map(deliveries.map((d) => [d.delivery_id, d]));
  const trails = groupById(trail);
  const attempted = groupById(attempts);
  return new Map(
    deliveryIds.map((id) => {
      const row = delivery.get(id) ?? null;
      return [
        id,
        {
          delivery: row,
          source: sources.get(row?.source_id ?? '') ?? null,
          body: bodies.get(row?.source_id ?? '') ?? null,
          trail: trails.get(id) ?? [],
          attempts: attempted.get(id) ?? [],
          records: records.filter((r) => r.delivery_id === id),
        },
      ];
    }),
  );
}

async function listRows<T>(db: Queryable, name: string, text: string, ids: readonly string[]): Promise<T[]> {
  const result = await db.query({ name, text, values: [ids], types: FACT_TYPES });
  return result.rows as T[];
}

function groupById<T>(rows: readonly Of<T>[]): Map<string, Omit<Of<T>, 'delivery_id'>[]> {
  const groups = new Map<string, Omit<Of<T>, 'delivery_id'>[]>();
  for (const { delivery_id, ...rest } of rows) {
    const group = groups.get(delivery_id) ?? [];
    groups.set(delivery_id, group);
    group.push(rest);
  }
  return groups;
}

const DELIVERY = `
  select delivery_id, ${kindOf('delivery')} as kind,
         coalesce(reminder_id, event_id) as source_id, endpoint_id, contract_ref, idempotency_key, state, dead_reason,
         due_at, scheduled_at, deadline_at, attempt, attempt_base, cycle, revision, created_at, ended_at, trail_length,
         trail_sha256
    from delivery
   where delivery_id = any($1)`;

const TRAIL = `
  select delivery_id, entry, at, event, actor, detail, sha256
    from trail
   where delivery_id = any($1)
   order by delivery_id, entry, kind`;

const ATTEMPT = `
  select delivery_id, attempt, cycle, claimed_at, claimed_by, url, outcome, late, status, error, detail, started_at,
         finished_at, duration_ms, retry_after_seconds, retry_after_clamped, next_due_at, response_excerpt, shadow
    from attempt
   where delivery_id = any($1)
   order by delivery_id, attempt, kind`;

const RECORD = `
  select kind, delivery_id, cycle, contract_ref, endpoint_id, endpoint_url, state, dead_reason, idempotency_key,
         body_sha256, attempts, first_attempt_at, finished_at, due_at, deadline_at, revision, in_time, actor,
         trail_length, trail_sha256, shadow
    from audit_record
   where delivery_id = any($1)
   order by delivery_id, cycle, kind`;

const REMINDER = `
  select reminder_id, delivery_id, idempotency_key, content_sha256, endpoint_id, contract_ref, type, renewal_date,
         notice_period, jurisdiction, time_zone_given, time_zone, deadline_period, deadline_given_at, due_at,
         deadline_at, late_start, due_proof, revision, created_at, updated_at
    from reminder
   where reminder_id = any($1)`;

const EVENT = `
  select event_id, idempotency_key, content_sha256, type, contract_ref, answer, created_at
    from event
   where event_id = any($1)`;

const BODY = `
  select source_id, sha256, data_offset, erased_at, sha256(bytes) as bytes_sha256
    from body
   where source_id = any($1)`;

/** The bytes of bodies, by the id of the reminder or event; erased ones are left out. */
export async function findBodies(db: Queryable, sourceIds: readonly string[]): Promise<Map<string, Buffer>> {
  const result = await db.query<{ source_id: string; bytes: Buffer }>({
    name: 'find_bodies',
    text: `
      select source_id, bytes
        from body
       where source_id = any($1)
         and bytes is not null`,
    values: [sourceIds],
  });
  return new Map(result.rows.map((row) => [row.source_id, row.bytes]));
}

/** The database's instant, as evidence writes it. */
export async function findInstant(db: Queryable): Promise<string> {
  const result = await db.query({
    name: 'find_instant',
    text: 'select now() as at',
    values: [],
    types: FACT_TYPES,
  });
  return (result.rows[0] as { at: string }).at;
}

/** The next ids of deliveries that any row speaks of, be it evidence that has lost its delivery. */
export async function listKnownDeliveriesAfter(
  db: Queryable,
  page: { readonly after: string; readonly limit: number },
): Promise<string[]> {
  const result = await db.query<{ delivery_id: string }>({
    name: 'list_known_deliveries_after',
    text: `
      select delivery_id
        from (
          (select delivery_id from delivery where delivery_id > $1 order by delivery_id limit $2)
          union
          (select delivery_id from attempt where delivery_id > $1 order by delivery_id limit $2)
          union
          (select delivery_id from trail where delivery_id > $1 order by delivery_id limit $2)
          union
          (select delivery_id from audit_record where delivery_id > $1 order by delivery_id limit $2)
          union
          (select subject_id from seal_leaf where kind <> 'operation' and subject_id > $1 order by subject_id limit $2)
        ) as known
       order by delivery_id
       limit $2`,
    values: [page.after, page.limit],
  });
  return result.rows.map((row) => row.delivery_id);
}

/** A reminder, event or body that belongs to nothing. */
export interface Orphan {
  readonly what: 'reminder' | 'event' | 'body';
  readonly id: string;
  /** The delivery that it names and that is not there; undefined: it names none. */
  readonly deliveryId: string | undefined;
}

/** Among the next sources of a kind, those whose delivery is missing, and how far it looked; last undefined: the end. */
export async function listOrphansAfter(
  db: Queryable,
  page: { readonly what: Orphan['what']; readonly after: string; readonly limit: number },
): Promise<{ orphans: Orphan[]; last: string | undefined }> {
  const result = await db.query<{ id: string; last: string; delivery_id: string | null }>({
    name: `list_orphans_${page.what}`,
    text: ORPHANS[page.what],
    values: [page.after, page.limit],
  });
  return {
    orphans: result.rows
      .filter((row) => row.id !== null)
      .map((row) => ({ what: page.what, id: row.id, deliveryId: row.delivery_id ?? undefined })),
    last: result.rows[0]?.last,
  };
}

const ORPHANS = {
  reminder: `
    with page as (
      select reminder_id as id, delivery_id from reminder where reminder_id > $1 order by reminder_id limit $2
    )
    select bounds.last, o.id, o.delivery_id
      from (select max(id) as last from page) as bounds
      left join (
        select p.id, p.delivery_id
          from page p
         where not exists (select from delivery d where d.delivery_id = p.delivery_id and d.reminder_id = p.id)
      ) as o on true
     where bounds.last is not null`,
  event: `
    with page as (
      select event_id as id, answer from event where event_id > $1 order by event_id limit $2
    )
    select bounds.last, o.id, o.delivery_id
      from (select max(id) as last from page) as bounds
      left join (
        select p.id, a ->> 'delivery_id' as delivery_id
          from page p, jsonb_array_elements(p.answer) as a
         where a ? 'delivery_id'
           and not exists (
             select from delivery d where d.delivery_id = a ->> 'delivery_id' and d.event_id = p.id)
      ) as o on true
     where bounds.last is not null`,
  body: `
    with page as (
      select source_id as id from body where source_id > $1 order by source_id limit $2
    )
    select bounds.last, o.id, null as delivery_id
      from (select max(id) as last from page) as bounds
      left join (
        select p.id
          from page p
         where not exists (select from reminder r where r.reminder_id = p.id)
           and not exists (select from event e where e.event_id = p.id)
      ) as o on true
     where bounds.last is not null`,
} as const;
