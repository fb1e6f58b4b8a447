import Type, { type Static } from 'typebox';
import { canonicalJson, sha256Hex } from '../json.ts';

// What the database says of a delivery, as it is exported and sealed: names as in the schema, instants as RFC 3339 text
// in UTC to the microsecond, hashes in hex, JSON columns as text.

const Instant = Type.String({ pattern: '^\\d{4,6}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$' });
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Text = Type.String();
const Whole = Type.Integer({ minimum: 0 });
const orNull = <T extends ReturnType<typeof Type.String> | typeof Whole>(type: T) =>
  Type.Union([type, Type.Null()]);
const closed = { additionalProperties: false } as const;
const Kind = Type.Union([Type.Literal('reminder'), Type.Literal('event')]);

export const DeliveryRow = Type.Object(
  {
    delivery_id: Text,
    kind: Kind,
    source_id: Text,
    endpoint_id: Text,
    contract_ref: orNull(Text),
    idempotency_key: Text,
    state: Text,
    dead_reason: orNull(Text),
    due_at: orNull(Instant),
    scheduled_at: Instant,
    deadline_at: orNull(Instant),
    attempt: Whole,
    attempt_base: Whole,
    cycle: Whole,
    revision: Whole,
    created_at: Instant,
    ended_at: orNull(Instant),
    trail_length: Whole,
    trail_sha256: Hash,
  },
  closed,
);
export type DeliveryRow = Static<typeof DeliveryRow>;

export const ReminderRow = Type.Object(
  {
    reminder_id: Text,
    delivery_id: Text,
    idempotency_key: Text,
    content_sha256: Hash,
    endpoint_id: Text,
    contract_ref: Text,
    type: Text,
    renewal_date: Text,
    notice_period: Text,
    jurisdiction: Text,
    time_zone_given: orNull(Text),
    time_zone: Text,
    deadline_period: orNull(Text),
    deadline_given_at: orNull(Instant),
    due_at: Instant,
    deadline_at: Instant,
    late_start: Type.Boolean(),
    due_proof: Text,
    revision: Whole,
    created_at: Instant,
    updated_at: Instant,
  },
  closed,
);
export type ReminderRow = Static<typeof ReminderRow>;

export const EventRow = Type.Object(
  {
    event_id: Text,
    idempotency_key: Text,
    content_sha256: Hash,
    type: Text,
    contract_ref: orNull(Text),
    answer: Text,
    created_at: Instant,
  },
  closed,
);
export type EventRow = Static<typeof EventRow>;

export const BodyRow = Type.Object(
  {
    sha256: Hash,
    data_offset: Whole,
    erased_at: orNull(Instant),
    /** Of the bytes that are stored; null: erased. */
    bytes_sha256: orNull(Hash),
  },
  closed,
);
export type BodyRow = Static<typeof BodyRow>;

export const AttemptRow = Type.Object(
  {
    attempt: Whole,
    cycle: Whole,
    claimed_at: Instant,
    claimed_by: Text,
    url: Text,
    /** Null: a call is under way. */
    outcome: orNull(Text),
    late: Type.Boolean(),
    status: orNull(Whole),
    error: orNull(Text),
    detail: orNull(Text),
    started_at: orNull(Instant),
    finished_at: orNull(Instant),
    duration_ms: orNull(Whole),
    retry_after_seconds: orNull(Whole),
    retry_after_clamped: Type.Boolean(),
    next_due_at: orNull(Instant),
    response_excerpt: orNull(Text),
    /** Everything but the call: nothing was sent. */
    shadow: Type.Boolean(),
  },
  closed,
);
export type AttemptRow = Static<typeof AttemptRow>;

export const TrailRow = Type.Object(
  { entry: Whole, at: Instant, event: Text, actor: Text, detail: Text, sha256: Hash },
  closed,
);

export const RecordRow = Type.Object(
  {
    kind: Kind,
    delivery_id: Text,
    cycle: Whole,
    contract_ref: orNull(Text),
    endpoint_id: Text,
    endpoint_url: Text,
    state: Text,
    dead_reason: orNull(Text),
    idempotency_key: Text,
    body_sha256: Hash,
    attempts: Whole,
    first_attempt_at: orNull(Instant),
    finished_at: Instant,
    due_at: Instant,
    deadline_at: orNull(Instant),
    revision: Whole,
    in_time: Type.Boolean(),
    actor: Text,
    trail_length: Whole,
    trail_sha256: Hash,
    shadow: Type.Boolean(),
  },
  closed,
);
export type RecordRow = Static<typeof RecordRow>;

export const OperationRow = Type.Object(
  { operation_id: Text, at: Instant, subject_id: Text, event: Text, actor: Text, detail: Text },
  closed,
);
export type OperationRow = Static<typeof OperationRow>;

/** Everything that is known of one delivery; null: the row is not there. */
export interface DeliveryFacts {
  readonly delivery: DeliveryRow | null;
  readonly source: ReminderRow | EventRow | null;
  readonly body: BodyRow | null;
  readonly trail: readonly Static<typeof TrailRow>[];
  readonly attempts: readonly AttemptRow[];
  readonly records: readonly RecordRow[];
}

/**
 * The hash of what the trail does not cover to the letter: the reminder or event, the attempts that ended, and what of
 * the delivery only changes together with a trail entry.
 */
export function hashContent(facts: Omit<DeliveryFacts, 'trail' | 'records'>): string {
  const { delivery, source, body, attempts } = facts;
  return sha256Hex(
    canonicalJson({
      delivery: delivery && {
        source_id: delivery.source_id,
        endpoint_id: delivery.endpoint_id,
        contract_ref: delivery.contract_ref,
        idempotency_key: delivery.idempotency_key,
        scheduled_at: delivery.scheduled_at,
        deadline_at: delivery.deadline_at,
        created_at: delivery.created_at,
      },
      source,
      body: body && { sha256: body.sha256, data_offset: body.data_offset },
      attempts: attempts.filter((a) => a.outcome !== null),
    }),
  );
}

/** What a leaf says of a delivery: its trail up to an entry, and the audit record that ended there, if one did. */
export interface DeliveryLeaf {
  readonly kind: 'reminder' | 'event';
  readonly delivery_id: string;
  readonly trail_length: number;
  readonly trail_sha256: string;
  readonly content_sha256: string;
  readonly record: RecordRow | null;
}

/** The text whose hash is a delivery's leaf. */
export function deliveryLeafText(leaf: DeliveryLeaf): string {
  return canonicalJson({ leaf: 'delivery', ...leaf });
}

/** The text whose hash is the leaf of an operation. */
export function operationLeafText(operation: OperationRow): string {
  return canonicalJson({ leaf: 'operation', ...operation });
}
