import Type, { type Static } from 'typebox';
import { PERIOD_PATTERN } from '../calendar/notice.ts';
import { oneOf } from './one-of.ts';
import { MaxAttempts, PolicyRequest, RetrySchedule } from './policy.ts';

/** Text from outside that is stored and shown: no control characters, U+0000 among them. */
const PRINTABLE = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$';

export const ContractRef = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: PRINTABLE,
  description: "The contract's reference, as on its invoices.",
});

export const EndpointReference = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: PRINTABLE,
  description: "An endpoint's id or its unique name.",
});

export const EventType = Type.String({
  pattern: '^[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*$',
  maxLength: 100,
  description: 'What happened, such as `order.created`.',
});

export const IdempotencyKey = Type.String({
  pattern: '^[A-Za-z0-9_:./-]{1,200}$',
  description: 'Chosen by the producer; the same key and content is the same thing.',
});

export const Instant = Type.String({ format: 'date-time', description: 'RFC 3339, with an offset.' });

const Period = Type.String({
  pattern: PERIOD_PATTERN,
  maxLength: 40,
  description: 'ISO 8601 dates only (`P30D`, `P1M15D`, `P2W`), or business days (`P10B`).',
});

const RenewalDate = Type.String({ format: 'date', description: 'YYYY-MM-DD.' });

export const ReminderBody = Type.Object(
  {
    idempotency_key: Type.Optional(IdempotencyKey),
    contract_ref: ContractRef,
    endpoint: EndpointReference,
    renewal_date: RenewalDate,
    notice_period: Period,
    jurisdiction: Type.String({
      minLength: 1,
      maxLength: 60,
      description: 'ISO 3166 code (`DE`, `DE-BY`, `US-CA`), or the name of a calendar file.',
    }),
    time_zone: Type.Optional(Type.String({ maxLength: 60, description: 'IANA name.' })),
    deadline: Type.Optional(Period),
    deadline_at: Type.Optional(Instant),
    type: Type.Optional(EventType),
    payload: Type.Optional(Type.Any({ description: 'Any JSON; sent as `data`.' })),
  },
  { additionalProperties: false },
);
export type ReminderBody = Static<typeof ReminderBody>;

const ReminderReference = {
  contract_ref: Type.Optional(ContractRef),
  reminder_id: Type.Optional(Type.String({ pattern: '^rem_[0-9a-hjkmnp-tv-z]{26}$' })),
};

const Timing = {
  renewal_date: Type.Optional(RenewalDate),
  notice_period: Type.Optional(Period),
  deadline: Type.Optional(Period),
  deadline_at: Type.Optional(Instant),
};

export const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  pattern: PRINTABLE,
  description: 'Why; for the audit trail.',
});

/** Over AMQP; HTTP names the reminder in the path. */
export const RescheduleBody = Type.Object(
  {
    idempotency_key: Type.Optional(IdempotencyKey),
    ...ReminderReference,
    ...Timing,
    reason: Type.Optional(Reason),
  },
  { additionalProperties: false },
);
export type RescheduleBody = Static<typeof RescheduleBody>;

export const ReminderPatchBody = Type.Object(
  { idempotency_key: Type.Optional(IdempotencyKey), ...Timing, reason: Type.Optional(Reason) },
  { additionalProperties: false, minProperties: 1 },
);
export type ReminderPatchBody = Static<typeof ReminderPatchBody>;

export const CancelBody = Type.Object(
  { idempotency_key: Type.Optional(IdempotencyKey), ...ReminderReference, reason: Reason },
  { additionalProperties: false },
);
export type CancelBody = Static<typeof CancelBody>;

export const ReasonBody = Type.Object(
  { idempotency_key: Type.Optional(IdempotencyKey), reason: Reason },
  { additionalProperties: false },
);
export type ReasonBody = Static<typeof ReasonBody>;

export const EventBody = Type.Object(
  {
    idempotency_key: Type.Optional(IdempotencyKey),
    type: EventType,
    payload: Type.Any({ description: 'Any JSON; sent as `data`.' }),
    endpoint: Type.Optional(EndpointReference),
    contract_ref: Type.Optional(ContractRef),
    deliver_at: Type.Optional(Instant),
    deadline_at: Type.Optional(Instant),
  },
  { additionalProperties: false },
);
export type EventBody = Static<typeof EventBody>;

const EventTypePattern = Type.String({
  pattern: '^(\\*|[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*(\\.\\*)?)$',
  maxLength: 100,
  description: '`*`, an exact type, or a family such as `order.*`.',
});

const Mode = oneOf(['live', 'shadow'], {
  description: '`shadow`: everything but the call to the customer.',
});

/** Either may be null, and is then taken away. */
export interface TlsBody {
  readonly ca?: string | null;
  readonly certificate?: string | null;
  readonly key?: string | null;
}

const MAX_PEM_LENGTH = 65_536;

function pem(description: string) {
  return { type: ['string', 'null'], minLength: 1, maxLength: MAX_PEM_LENGTH, description };
}

// Types rather than a union: of a union a validator says only that no branch matched.
const Tls = Type.Unsafe<TlsBody | null>({
  type: ['object', 'null'],
  additionalProperties: false,
  properties: {
    ca: pem(
      'The authorities its server may be certified by, as PEM; they take the place of the public ones.',
    ),
    certificate: pem('The client certificate, its chain behind it, as PEM; with `key`.'),
    key: { ...pem('The key of `certificate`, as PEM without a passphrase; never shown.'), writeOnly: true },
  },
  description: 'Certificates of its own; null: none.',
});

const EndpointMembers = {
  name: Type.String({
    // What could be an id would be taken for another endpoint's.
    pattern: '^(?!ep_)[a-z0-9][a-z0-9._-]{0,99}$',
    description: 'Unique; lower case; not beginning with ep_, as ids do.',
  }),
  url: Type.String({ minLength: 1, maxLength: 2048 }),
  mode: Mode,
  event_types: Type.Array(EventTypePattern, { minItems: 1, maxItems: 100, uniqueItems: true }),
  policy: Type.Union([PolicyRequest, Type.Null()], {
    description: 'When it is tried again; null: the default of what is sent.',
  }),
  retry_schedule: RetrySchedule,
  max_attempts: MaxAttempts,
  max_in_flight: Type.Union([Type.Integer({ minimum: 1, maximum: 10_000 }), Type.Null()]),
  headers: Type.Record(Type.String(), Type.String()),
  tls: Tls,
};

export const EndpointBody = Type.Object(
  {
    ...EndpointMembers,
    mode: Type.Optional(EndpointMembers.mode),
    event_types: Type.Optional(EndpointMembers.event_types),
    policy: Type.Optional(EndpointMembers.policy),
    retry_schedule: Type.Optional(EndpointMembers.retry_schedule),
    max_attempts: Type.Optional(EndpointMembers.max_attempts),
    max_in_flight: Type.Optional(EndpointMembers.max_in_flight),
    headers: Type.Optional(EndpointMembers.headers),
    tls: Type.Optional(EndpointMembers.tls),
    secret: Type.Optional(Type.String({ description: '`whsec_…`; made if left out.' })),
  },
  { additionalProperties: false },
);
export type EndpointBody = Static<typeof EndpointBody>;

/** A JSON merge patch (RFC 7396). */
export const EndpointPatchBody = Type.Partial(
  Type.Object({
    ...EndpointMembers,
    headers: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])),
  }),
  { additionalProperties: false, minProperties: 1 },
);
export type EndpointPatchBody = Static<typeof EndpointPatchBody>;
