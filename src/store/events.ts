import type { Queryable } from './pool.ts';

/** One entry of the answer that an event's producer got: a delivery, or an endpoint that was skipped. */
export interface EventDelivery {
  readonly delivery_id?: string;
  readonly endpoint_id: string;
  readonly state: string;
}

export interface StoredEvent {
  readonly eventId: string;
  readonly idempotencyKey: string;
  readonly contentSha256: Buffer;
  readonly type: string;
  readonly contractRef: string | undefined;
  readonly answer: readonly EventDelivery[];
  readonly createdAt: Date;
}

interface EventRow {
  readonly event_id: string;
  readonly idempotency_key: string;
  readonly content_sha256: Buffer;
  readonly type: string;
  readonly contract_ref: string | null;
  readonly answer: EventDelivery[];
  readonly created_at: Date;
}

function toEvent(row: EventRow): StoredEvent {
  return {
    eventId: row.event_id,
    idempotencyKey: row.idempotency_key,
    contentSha256: row.content_sha256,
    type: row.type,
    contractRef: row.contract_ref ?? undefined,
    answer: row.answer,
    createdAt: row.created_at,
  };
}

/** Events by the producer's idempotency keys. */
export async function findEventsByKey(
  db: Queryable,
  keys: readonly string[],
): Promise<Map<string, StoredEvent>> {
  const result = await db.query<EventRow>({
    name: 'find_events_by_key',
    text: `
      select event_id, idempotency_key, content_sha256, type, contract_ref, answer, created_at
        from event
       where idempotency_key = any($1)`,
    values: [keys],
  });
  return new Map(result.rows.map((row) => [row.idempotency_key, toEvent(row)]));
}

/** One event by id. */
export async function findEvent(db: Queryable, eventId: string): Promise<StoredEvent | undefined> {
  const result = await db.query<EventRow>({
    name: 'find_event',
    text: `
      select event_id, idempotency_key, content_sha256, type, contract_ref, answer, created_at
        from event
       where event_id = $1`,
    values: [eventId],
  });
  return result.rows[0] && toEvent(result.rows[0]);
}
