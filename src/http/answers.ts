import Type, { type TSchema } from 'typebox';
import { oneOf } from '../domain/requests/one-of.ts';
import { STATES } from '../domain/state.ts';
import { PROBLEM_TYPE, PROBLEMS } from './problems.ts';

// Answers as they are documented. Members may be added: these objects are open, unlike requests.

function orNull<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

const Instant = Type.String({ format: 'date-time', description: 'RFC 3339, UTC.' });
const Text = Type.String();
const Whole = Type.Integer();
const State = oneOf([...STATES]);
const Anything = Type.Record(Text, Type.Any());

// Schemas that have a name in the document.

const Certificate = named('Certificate', {
  subject: Text,
  sha256: Type.String({ description: 'Of its DER form, lower-case hex.' }),
  expires_at: Instant,
});

const EndpointTls = named('EndpointTls', {
  ca: Type.Array(refTo(Certificate)),
  certificate: Type.Union([refTo(Certificate), Type.Null()], {
    description: 'The client certificate, without the chain it may come with.',
  }),
});

export const Endpoint = named('Endpoint', {
  endpoint_id: Text,
  name: Text,
  url: Text,
  status: oneOf(['active', 'paused', 'disabled']),
  status_reason: orNull(Text),
  mode: oneOf(['live', 'shadow']),
  event_types: Type.Array(Text),
  policy: Type.Union([Anything, Type.Null()], { description: 'null: the default of what is sent.' }),
  max_in_flight: orNull(Whole),
  headers: Type.Record(Text, Text, { description: 'Names only: values are not shown.' }),
  tls: Type.Union([refTo(EndpointTls), Type.Null()], { description: 'Certificates of its own; null: none.' }),
  consecutive_failures: Whole,
  created_at: Instant,
  updated_at: Instant,
});

export const EndpointWithSecret = named('EndpointWithSecret', {
  ...Endpoint.properties,
  secret: Type.String({ description: '`whsec_…`; shown this once.' }),
});

export const Reminder = named('Reminder', {
  reminder_id: Text,
  delivery_id: Text,
  contract_ref: Text,
  endpoint_id: Text,
  type: Text,
  renewal_date: Text,
  notice_period: Text,
  jurisdiction: Text,
  time_zone: Text,
  due_at: Instant,
  deadline_at: Instant,
  late_start: Type.Boolean(),
  state: State,
  revision: Whole,
  duplicate: Type.Boolean(),
  idempotency_key: Text,
  due_proof: Anything,
  created_at: Instant,
});

export const RescheduledReminder = named('RescheduledReminder', {
  applied: oneOf(['full', 'timing_only']),
  ...Reminder.properties,
});

const EventDelivery = Type.Object({
  delivery_id: Type.Optional(Text),
  endpoint_id: Text,
  state: oneOf([...STATES, 'skipped'], {
    description: '`skipped`: the endpoint was disabled, and there is no delivery.',
  }),
});

export const Event = named('Event', {
  event_id: Text,
  type: Text,
  duplicate: Type.Boolean(),
  deliveries: Type.Array(EventDelivery),
});

export const StoredEvent = named('StoredEvent', {
  ...Event.properties,
  idempotency_key: Text,
  contract_ref: orNull(Text),
  created_at: Instant,
});

const Attempt = named('Attempt', {
  attempt: Whole,
  cycle: Whole,
  outcome: Type.Union([oneOf(['delivered', 'retryable', 'terminal', 'unknown']), Type.Null()], {
    description: 'null: it is under way.',
  }),
  late: Type.Boolean({ description: 'The result came after the claim had expired.' }),
  status: orNull(Whole),
  error: orNull(Text),
  error_detail: orNull(Text),
  claimed_at: Instant,
  claimed_by: Text,
  started_at: orNull(Instant),
  finished_at: orNull(Instant),
  duration_ms: orNull(Whole),
  url: Text,
  retry_after_seconds: orNull(Whole),
  retry_after_clamped: Type.Boolean(),
  next_due_at: orNull(Instant),
  response_excerpt: orNull(Text),
  shadow: Type.Boolean({ description: 'Whether nothing was sent, because the endpoint was in shadow mode.' }),
});

export const Delivery = named('Delivery', {
  delivery_id: Text,
  state: State,
  due_at: Type.String({
    format: 'date-time',
    description: 'When the next attempt is due; of one that has ended, when the first one was.',
  }),
  scheduled_at: Instant,
  deadline_at: orNull(Instant),
  attempt: Type.Integer({ description: 'The latest; 0: none was made.' }),
  max_attempts: Type.Integer({ description: 'Of a cycle, by the policy in use.' }),
  attempts_in_cycle: Whole,
  manual_attempts: Type.Integer({ description: 'Of this cycle; they come on top of `max_attempts`.' }),
  cycle: Whole,
  revision: Whole,
  idempotency_key: Text,
  contract_ref: orNull(Text),
  endpoint_id: Text,
  endpoint_name: Text,
  endpoint_status: Endpoint.properties.status,
  reminder_id: orNull(Text),
  event_id: orNull(Text),
  dead_reason: orNull(Text),
  claimed_by: orNull(Text),
  claim_expires_at: orNull(Instant),
  created_at: Instant,
  ended_at: orNull(Instant),
});

export const DeliveryWithAttempts = named('DeliveryWithAttempts', {
  ...Delivery.properties,
  attempts: Type.Array(refTo(Attempt)),
});

export const DeadLetter = named('DeadLetter', {
  ...Delivery.properties,
  last_outcome: orNull(Text),
  last_status: orNull(Whole),
  last_error: orNull(Text),
});

export const Replay = named('Replay', {
  matched: Type.Integer({ description: 'When it began.' }),
  replayed: Whole,
  skipped: Type.Object(
    { endpoint_disabled: Whole, deadline_passed: Whole },
    { description: 'Left dead, and why; in a dry run: what would be.' },
  ),
  dry_run: Type.Boolean(),
  complete: Type.Boolean({ description: 'false: ended early; repeat the call for the rest.' }),
});

export const AuditRecord = named('AuditRecord', {
  delivery_id: Text,
  kind: oneOf(['reminder', 'event']),
  cycle: Whole,
  contract_ref: orNull(Text),
  state: State,
  dead_reason: orNull(Text),
  idempotency_key: Text,
  body_sha256: Text,
  attempts: Whole,
  first_attempt_at: orNull(Instant),
  finished_at: Instant,
  due_at: Instant,
  deadline_at: orNull(Instant),
  revision: Whole,
  in_time: Type.Boolean(),
  shadow: Type.Boolean({ description: 'Whether nothing was sent, because the endpoint was in shadow mode.' }),
  actor: Text,
  endpoint_id: Text,
  endpoint_url: Text,
});

export const Explanation = named('Explanation', {
  due_at: Instant,
  deadline_at: Instant,
  time_zone: Text,
  steps: Type.Array(Type.Object({ rule: Text, local: Text, instant: Instant, note: Text })),
  proof: Anything,
});

export const Calendar = named('Calendar', {
  calendar_code: Text,
  name: orNull(Text),
  holidays_from: orNull(Text),
  time_zone: orNull(Text),
  time_zones: Type.Array(Text),
  weekend: Type.Array(Text),
  opening_hours: Type.Record(Text, Type.Array(Text)),
  year: orNull(Whole),
  holidays: Type.Array(Type.Object({ date: Text, hours: Text, name: Text })),
  exceptions: Type.Array(Type.Object({ date: Text, kind: Text, hours: Type.Array(Text), reason: Text })),
  sources: Type.Array(Text),
  calendar_sha256: Text,
});

export const Readiness = named('Readiness', {
  ready: Type.Boolean(),
  checks: Type.Record(Text, Text, { description: '`ok`, or what is the matter.' }),
});

export const Problem = named('Problem', {
  type: Text,
  title: Text,
  status: Whole,
  code: oneOf(Object.keys(PROBLEMS)),
  detail: Text,
  errors: Type.Optional(
    Type.Array(Type.Object({ path: Type.String({ description: 'JSON pointer, RFC 6901.' }), message: Text })),
  ),
});

export const SCHEMAS = [
  Certificate,
  EndpointTls,
  Endpoint,
  EndpointWithSecret,
  Reminder,
  RescheduledReminder,
  Event,
  StoredEvent,
  Attempt,
  Delivery,
  DeliveryWithAttempts,
  DeadLetter,
  Replay,
  AuditRecord,
  Explanation,
  Calendar,
  Readiness,
  Problem,
];

function named<T extends Record<string, TSchema>>(id: string, members: T) {
  return Type.Object(members, { $id: id });
}

/** The schema by its name. */
export function refTo(schema: object): TSchema {
  return Type.Unsafe({ $ref: `${(schema as { $id?: string }).$id}#` });
}

/** An answer with one of the named schemas. */
export function answer(schema: object, description: string): TSchema {
  return Type.Unsafe({ description, content: { 'application/json': { schema: refTo(schema) } } });
}

/** An answer with a page of them. */
export function pageOf(schema: object, description: string): TSchema {
  const page = Type.Object({
    data: Type.Array(refTo(schema)),
    next_cursor: orNull(Text),
    has_more: Type.Boolean(),
  });
  return Type.Unsafe({ description, content: { 'application/json': { schema: page } } });
}

/** What every call may answer instead. */
export const REFUSED: Record<string, TSchema> = {
  default: Type.Unsafe({
    description: 'A problem (RFC 9457).',
    content: { [PROBLEM_TYPE]: { schema: refTo(Problem) } },
  }),
};
