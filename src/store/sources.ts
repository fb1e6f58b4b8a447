import { boolArray, bytesArray, floatArray, instantArray, intArray, textArray } from './binary-arrays.ts';
import type { Queryable } from './pool.ts';

/** A delivery row to be, of a reminder or an event. */
export interface NewDelivery {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly idempotencyKey: string;
  /** The instant of the first attempt; undefined: as long from now as `delayMs` says. */
  readonly dueAt?: Date;
  readonly delayMs?: number;
  readonly deadlineAt?: Date;
  readonly held: boolean;
}

export interface NewBody {
  readonly bytes: Buffer;
  readonly sha256: Buffer;
  readonly dataOffset: number;
}

export interface NewReminder {
  readonly reminderId: string;
  readonly idempotencyKey: string;
  readonly contentSha256: Buffer;
  readonly contractRef: string;
  readonly type: string;
  readonly renewalDate: string;
  readonly noticePeriod: string;
  readonly jurisdiction: string;
  readonly timeZoneGiven?: string;
  readonly timeZone: string;
  readonly deadlinePeriod?: string;
  readonly deadlineGivenAt?: Date;
  readonly dueAt: Date;
  readonly deadlineAt: Date;
  readonly lateStart: boolean;
  readonly dueProof: object;
  readonly body: NewBody;
  readonly delivery: NewDelivery;
  readonly actor: string;
  readonly trail: string;
}

export interface NewEvent {
  readonly eventId: string;
  readonly idempotencyKey: string;
  readonly contentSha256: Buffer;
  readonly type: string;
  readonly contractRef?: string;
  readonly answer: object;
  readonly body: NewBody;
  readonly deliveries: readonly NewDelivery[];
  readonly actor: string;
  readonly trail: string;
}

/** A delivery row as it was inserted: what a wake-up needs to know. */
export interface InsertedDelivery {
  readonly sourceId: string;
  readonly deliveryId: string;
  readonly contractRef: string | undefined;
  readonly state: string;
  readonly remainingMs: number;
}

/** What follows once the sources are inserted: their bodies, deliveries and first trail entries. */
const INSERT_REST = `
), source as (
  select i.source_id, i.kind, i.contract_ref, n.actor, n.trail, n.bytes, n.sha256, n.data_offset
    from inserted i
    join unnest($9::text[], $10::bytea[], $11::bytea[], $12::int[], $13::text[], $14::text[])
         as n (source_id, bytes, sha256, data_offset, actor, trail)
      on n.source_id = i.source_id
), embodied as (
  insert into body (source_id, bytes, sha256, data_offset)
  select source_id, bytes, sha256, data_offset
    from source
), planned as (
  select s.source_id, s.kind, s.contract_ref, s.actor, s.trail, p.delivery_id, p.endpoint_id, p.idempotency_key,
         case when p.held then 'held' else 'due' end as state,
         coalesce(p.due_at, now() + p.delay_ms * interval '1 millisecond') as due_at, p.deadline_at,
         trail_hash(''::bytea, 1, now(), 'schedule', s.actor, s.trail) as trail_sha256
    from source s
    join unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::float8[],
                $7::timestamptz[], $8::bool[])
         as p (source_id, delivery_id, endpoint_id, idempotency_key, due_at, delay_ms, deadline_at, held)
      on p.source_id = s.source_id
), delivered as (
  insert into delivery (
    delivery_id, reminder_id, event_id, endpoint_id, contract_ref, idempotency_key, state, due_at, scheduled_at,
    deadline_at, trail_length, trail_sha256)
  select delivery_id, case kind when 'reminder' then source_id end, case kind when 'event' then source_id end,
         endpoint_id, contract_ref, idempotency_key, state, due_at, due_at, deadline_at, 1, trail_sha256
    from planned
), told as (
  insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
  select kind, delivery_id, 1, now(), 'schedule', actor, trail, trail_sha256
    from planned
)
select s.source_id, p.delivery_id, s.contract_ref, p.state,
       1000 * extract(epoch from p.due_at - now())::float8 as remaining_ms
  from source s
  left join planned p on p.source_id = s.source_id`;

const INSERT_REMINDERS = `
with inserted as (
  insert into reminder (
    reminder_id, delivery_id, idempotency_key, content_sha256, endpoint_id, contract_ref, type, renewal_date,
    notice_period, jurisdiction, time_zone_given, time_zone, deadline_period, deadline_given_at, due_at, deadline_at,
    late_start, due_proof)
  select r.reminder_id, r.delivery_id, r.idempotency_key, r.content_sha256, r.endpoint_id, r.contract_ref, r.type,
         r.renewal_date::date, r.notice_period, r.jurisdiction, r.time_zone_given, r.time_zone, r.deadline_period,
         r.deadline_given_at, r.due_at, r.deadline_at, r.late_start, r.due_proof::jsonb
    from unnest(
           $15::text[], $16::text[], $17::text[], $18::bytea[], $19::text[], $20::text[], $21::text[], $22::text[],
           $23::text[], $24::text[], $25::text[], $26::text[], $27::text[], $28::timestamptz[], $29::timestamptz[],
           $30::timestamptz[], $31::bool[], $32::text[])
         as r (reminder_id, delivery_id, idempotency_key, content_sha256, endpoint_id, contract_ref, type,
               renewal_date, notice_period, jurisdiction, time_zone_given, time_zone, deadline_period,
               deadline_given_at, due_at, deadline_at, late_start, due_proof)
   -- Keys are locked in this order, so that two batches never wait for each other in a circle.
   order by r.idempotency_key
  on conflict (idempotency_key) do nothing
  returning reminder_id as source_id, 'reminder' as kind, contract_ref
${INSERT_REST}`;

const INSERT_EVENTS = `
with inserted as (
  insert into event (event_id, idempotency_key, content_sha256, type, contract_ref, answer)
  select e.event_id, e.idempotency_key, e.content_sha256, e.type, e.contract_ref, e.answer::jsonb
    from unnest($15::text[], $16::text[], $17::bytea[], $18::text[], $19::text[], $20::text[])
         as e (event_id, idempotency_key, content_sha256, type, contract_ref, answer)
   -- As above: keys are locked in this order.
   order by e.idempotency_key
  on conflict (idempotency_key) do nothing
  returning event_id as source_id, 'event' as kind, contract_ref
${INSERT_REST}`;

/**
 * Inserts reminders with their bodies, deliveries and first trail entries, in one statement.
 *
 * @returns by reminder id what was inserted; one that is missing has a key that was there already
 */
export async function insertReminders(
  db: Queryable,
  reminders: readonly NewReminder[],
): Promise<Map<string, InsertedDelivery[]>> {
  const of = <T>(pick: (r: NewReminder) => T): T[] => reminders.map(pick);
  return insertSources(db, {
    name: 'insert_reminders',
    text: INSERT_REMINDERS,
    sources: reminders.map((r) => ({ ...r, sourceId: r.reminderId, deliveries: [r.delivery] })),
    columns: [
      textArray(of((r) => r.reminderId)),
      textArray(of((r) => r.delivery.deliveryId)),
      textArray(of((r) => r.idempotencyKey)),
      bytesArray(of((r) => r.contentSha256)),
      textArray(of((r) => r.delivery.endpointId)),
      textArray(of((r) => r.contractRef)),
      textArray(of((r) => r.type)),
      textArray(of((r) => r.renewalDate)),
      textArray(of((r) => r.noticePeriod)),
      textArray(of((r) => r.jurisdiction)),
      textArray(of((r) => r.timeZoneGiven)),
      textArray(of((r) => r.timeZone)),
      textArray(of((r) => r.deadlinePeriod)),
      instantArray(of((r) => r.deadlineGivenAt)),
      instantArray(of((r) => r.dueAt)),
      instantArray(of((r) => r.deadlineAt)),
      boolArray(of((r) => r.lateStart)),
      textArray(of((r) => JSON.stringify(r.dueProof))),
    ],
  });
}

/**
 * Inserts events with their bodies, deliveries and first trail entries, in one statement.
 *
 * @returns by event id what was inserted (nothing where no endpoint matched); one that is missing has a key that was
 *   there already
 */
export async function insertEvents(
  db: Queryable,
  events: readonly NewEvent[],
): Promise<Map<string, InsertedDelivery[]>> {
  const of = <T>(pick: (e: NewEvent) => T): T[] => events.map(pick);
  return insertSources(db, {
    name: 'insert_events',
    text: INSERT_EVENTS,
    sources: events.map((e) => ({ ...e, sourceId: e.eventId })),
    columns: [
      textArray(of((e) => e.eventId)),
      textArray(of((e) => e.idempotencyKey)),
      bytesArray(of((e) => e.contentSha256)),
      textArray(of((e) => e.type)),
      textArray(of((e) => e.contractRef)),
      textArray(of((e) => JSON.stringify(e.answer))),
    ],
  });
}

interface NewSource {
  readonly sourceId: string;
  readonly body: NewBody;
  readonly deliveries: readonly NewDelivery[];
  readonly actor: string;
  readonly trail: string;
}

interface Insertion {
  readonly name: string;
  readonly text: string;
  readonly sources: readonly NewSource[];
  readonly columns: readonly Buffer[];
}

async function insertSources(db: Queryable, insertion: Insertion): Promise<Map<string, InsertedDelivery[]>> {
  const { sources } = insertion;
  const plans = sources.flatMap((s) => s.deliveries.map((delivery) => ({ sourceId: s.sourceId, delivery })));
  const result = await db.query<{
    source_id: string;
    delivery_id: string | null;
    contract_ref: string | null;
    state: string;
    remaining_ms: number;
  }>({
    name: insertion.name,
    text: insertion.text,
    values: [
      textArray(plans.map((p) => p.sourceId)),
      textArray(plans.map((p) => p.delivery.deliveryId)),
      textArray(plans.map((p) => p.delivery.endpointId)),
      textArray(plans.map((p) => p.delivery.idempotencyKey)),
      instantArray(plans.map((p) => p.delivery.dueAt)),
      floatArray(plans.map((p) => p.delivery.delayMs)),
      instantArray(plans.map((p) => p.delivery.deadlineAt)),
      boolArray(plans.map((p) => p.delivery.held)),
      textArray(sources.map((s) => s.sourceId)),
      bytesArray(sources.map((s) => s.body.bytes)),
      bytesArray(sources.map((s) => s.body.sha256)),
      intArray(sources.map((s) => s.body.dataOffset)),
      textArray(sources.map((s) => s.actor)),
      textArray(sources.map((s) => s.trail)),
      ...insertion.columns,
    ],
  });
  const inserted = new Map<string, InsertedDelivery[]>();
  for (const row of result.rows) {
    const deliveries = inserted.get(row.source_id) ?? [];
    inserted.set(row.source_id, deliveries);
    if (row.delivery_id === null) continue;
    deliveries.push({
      sourceId: row.source_id,
      deliveryId: row.delivery_id,
      contractRef: row.contract_ref ?? undefined,
      state: row.state,
      remainingMs: row.remaining_ms,
    });
  }
  return inserted;
}
