import Type, { type Static } from 'typebox';
import { MAX_SECRET_OVERLAP_SECONDS, SECRET_OVERLAP_SECONDS } from '../signing.ts';
import { oneOf } from './one-of.ts';
import { ContractRef, EndpointReference, EventBody, Instant, Reason, ReminderBody } from './schemas.ts';

/** Most events of one batch. */
export const MAX_BATCH_EVENTS = 500;

/** Each event is judged on its own, so here it may be anything. */
export const EventBatchBody = Type.Object(
  { events: Type.Array(Type.Any(), { minItems: 1, maxItems: MAX_BATCH_EVENTS }) },
  { additionalProperties: false },
);
export type EventBatchBody = Static<typeof EventBatchBody>;

/** What an `EventBatchBody` is for whoever writes one. */
export const EventBatchDocument = Type.Object(
  { events: Type.Array(EventBody, { minItems: 1, maxItems: MAX_BATCH_EVENTS }) },
  { additionalProperties: false },
);

export const OptionalReasonBody = Type.Object(
  { reason: Type.Optional(Reason) },
  { additionalProperties: false },
);
export type OptionalReasonBody = Static<typeof OptionalReasonBody>;

export const RotateSecretBody = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_SECRET_OVERLAP_SECONDS,
        description: `How long the old secret goes on signing beside the new one; ${SECRET_OVERLAP_SECONDS} if left out.`,
      }),
    ),
    reason: Type.Optional(Reason),
  },
  { additionalProperties: false },
);
export type RotateSecretBody = Static<typeof RotateSecretBody>;

const Force = Type.Boolean({ description: 'Send although the deadline has passed; then without one.' });

export const RetryBody = Type.Object(
  { reason: Type.Optional(Reason), force: Type.Optional(Force) },
  { additionalProperties: false },
);
export type RetryBody = Static<typeof RetryBody>;

export const DeadReason = oneOf(
  ['terminal_response', 'attempts_exhausted', 'deadline_passed', 'endpoint_gone'],
  { description: 'Why it ended without success.' },
);

export const DeadLetterFilterMembers = {
  endpoint_id: Type.Optional(EndpointReference),
  dead_reason: Type.Optional(DeadReason),
  contract_ref: Type.Optional(ContractRef),
  dead_after: Type.Optional(Instant),
  dead_before: Type.Optional(Instant),
};

export const ReplayBody = Type.Object(
  {
    filter: Type.Object(DeadLetterFilterMembers, {
      additionalProperties: false,
      description: 'Which dead letters; an empty one means all of them.',
    }),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only count.' })),
    force: Type.Optional(Force),
    reason: Type.Optional(Reason),
  },
  { additionalProperties: false },
);
export type ReplayBody = Static<typeof ReplayBody>;

const { renewal_date, notice_period, jurisdiction, time_zone, deadline, deadline_at } =
  ReminderBody.properties;

export const ExplainBody = Type.Object(
  { renewal_date, notice_period, jurisdiction, time_zone, deadline, deadline_at },
  { additionalProperties: false },
);
export type ExplainBody = Static<typeof ExplainBody>;
