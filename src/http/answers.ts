import Type from 'typebox';
import { Bundle } from '../domain/audit/bundle.ts';
import { oneOf } from '../domain/requests/one-of.ts';
import { DeadReason } from '../domain/requests/operations.ts';
import { DeadlinePolicy, Policy, SchedulePolicy } from '../domain/requests/policy.ts';
import { STATES } from '../domain/state.ts';
import { Calendar, DueProof, DueStep, Explanation } from './calendar-answers.ts';
import { Day, Id, Instant, named, orNull, pageOf, refTo, Sha256, Text, Whole } from './describe.ts';
import { PROBLEMS } from './problems.ts';

const State = oneOf([...STATES]);
const Outcome = oneOf(['delivered', 'retryable', 'terminal', 'unknown']);

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
  endpoint_id: Id('ep'),
  name: Text,
  url: Text,
  status: oneOf(['active', 'paused', 'disabled']),
  status_reason: orNull(Text),
  mode: oneOf(['live', 'shadow']),
  event_types: Type.Array(Text),
  policy: orNull(Policy, { description: 'When it is tried again; null: the default of what is sent.' }),
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
  reminder_id: Id('rem'),
  delivery_id: Id('dlv'),
  contract_ref: Text,
  endpoint_id: Id('ep'),
  type: Text,
  renewal_date: Day,
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
  due_proof: refTo(DueProof),
  created_at: Instant,
});

export const RescheduledReminder = named('RescheduledReminder', {
  applied: oneOf(['full', 'timing_only']),
  ...Reminder.properties,
});

const EventDelivery = Type.Object({
  delivery_id: Type.Optional(Id('dlv')),
  endpoint_id: Id('ep'),
  state: oneOf([...STATES, 'skipped'], {
    description: '`skipped`: the endpoint was disabled, and there is no delivery.',
  }),
});

export const Event = named('Event', {
  event_id: Id('evt'),
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
  outcome: orNull(Outcome, { description: 'null: it is under way.' }),
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
  delivery_id: Id('dlv'),
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
  manual_attempts: Type.Integer({
    description:
      'Of this cycle, those on top of `max_attempts`: asked for by people, or made for a time from which it was moved ahead.',
  }),
  cycle: Whole,
  revision: Whole,
  idempotency_key: Text,
  contract_ref: orNull(Text),
  endpoint_id: Id('ep'),
  endpoint_name: Text,
  endpoint_status: Endpoint.properties.status,
  reminder_id: orNull(Id('rem')),
  event_id: orNull(Id('evt')),
  dead_reason: orNull(DeadReason),
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
  last_outcome: orNull(Outcome),
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
  delivery_id: Id('dlv'),
  kind: oneOf(['reminder', 'event']),
  cycle: Whole,
  contract_ref: orNull(Text),
  state: State,
  dead_reason: orNull(DeadReason),
  idempotency_key: Text,
  body_sha256: Sha256,
  attempts: Whole,
  first_attempt_at: orNull(Instant),
  finished_at: Instant,
  due_at: Instant,
  deadline_at: orNull(Instant),
  revision: Whole,
  in_time: Type.Boolean(),
  shadow: Type.Boolean({ description: 'Whether nothing was sent, because the endpoint was in shadow mode.' }),
  actor: Text,
  endpoint_id: Id('ep'),
  endpoint_url: Text,
});

export const EvidenceBundle = { ...Bundle, $id: 'EvidenceBundle' };

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

export const EndpointPage = pageOf(Endpoint);
export const ReminderPage = pageOf(Reminder);
export const DeliveryPage = pageOf(Delivery);
export const DeadLetterPage = pageOf(DeadLetter);
export const AuditRecordPage = pageOf(AuditRecord);

export const SCHEMAS = [
  Certificate,
  EndpointTls,
  SchedulePolicy,
  DeadlinePolicy,
  Endpoint,
  EndpointWithSecret,
  EndpointPage,
  DueStep,
  DueProof,
  Reminder,
  RescheduledReminder,
  ReminderPage,
  Event,
  StoredEvent,
  Attempt,
  Delivery,
  DeliveryWithAttempts,
  DeliveryPage,
  DeadLetter,
  DeadLetterPage,
  Replay,
  AuditRecord,
  AuditRecordPage,
  EvidenceBundle,
  Explanation,
  Calendar,
  Readiness,
  Problem,
];
