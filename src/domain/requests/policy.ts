import Type, { type TSchema } from 'typebox';
import {
  DEFAULT_DEADLINE_POLICY,
  DEFAULT_SCHEDULE_POLICY,
  MAX_ATTEMPTS,
  MAX_WAIT_SECONDS,
} from '../policy.ts';
import { oneOf } from './one-of.ts';

const Seconds = Type.Number({ minimum: 0, maximum: MAX_WAIT_SECONDS });

export const RetrySchedule = Type.Array(Seconds, {
  minItems: 1,
  maxItems: MAX_ATTEMPTS,
  description: 'Seconds to wait before attempt 1, 2, …; the last value repeats.',
  examples: [DEFAULT_SCHEDULE_POLICY.retrySchedule],
});

export const MaxAttempts = Type.Integer({
  minimum: 1,
  maximum: MAX_ATTEMPTS,
  description: 'Of one cycle, the first included.',
});

const Statuses = (description: string) =>
  Type.Array(Type.Integer({ minimum: 300, maximum: 599 }), { maxItems: MAX_ATTEMPTS, description });

const Common = {
  max_attempts: MaxAttempts,
  jitter: Type.Number({ minimum: 0, maximum: 0.5, description: 'The share of a wait that chance may add.' }),
  terminal_statuses: Statuses('Answers that end the delivery, whatever the default.'),
  retryable_statuses: Statuses('Answers that are tried again, whatever the default.'),
};

const Schedule = {
  kind: Type.Literal('schedule'),
  retry_schedule: RetrySchedule,
  ...Common,
};

const Deadline = {
  kind: Type.Literal('deadline'),
  base_seconds: Type.Number({
    minimum: 1,
    maximum: MAX_WAIT_SECONDS,
    description: `A wait, at most; ${DEFAULT_DEADLINE_POLICY.baseSeconds} if left out.`,
  }),
  divisor: Type.Number({
    minimum: 1,
    maximum: 1000,
    description: 'A wait is at most what is left until the deadline, divided by this.',
  }),
  reserve_attempts: Type.Integer({
    minimum: 0,
    maximum: MAX_ATTEMPTS,
    description: 'The last ones, which are spread over what is left instead.',
  }),
  ...Common,
};

/** Policies as they are answered: with every member. */
export const SchedulePolicy = Type.Object(Schedule, { $id: 'SchedulePolicy' });
export const DeadlinePolicy = Type.Object(Deadline, { $id: 'DeadlinePolicy' });

/** Policies as they are given: what is left out has its default. */
export const SchedulePolicyRequest = given('SchedulePolicyRequest', Schedule);
export const DeadlinePolicyRequest = given('DeadlinePolicyRequest', Deadline);

function given($id: string, { kind, ...members }: Record<'kind', TSchema> & Record<string, TSchema>) {
  const optional = Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Type.Object({ kind, ...Object.fromEntries(optional) }, { $id, additionalProperties: false });
}

/** One of the two, told apart by `kind`. */
export const Policy = eitherOf('SchedulePolicy', 'DeadlinePolicy');
export const PolicyRequest = eitherOf('SchedulePolicyRequest', 'DeadlinePolicyRequest');

function eitherOf(...names: readonly string[]) {
  return Type.Unsafe<unknown>({
    type: 'object',
    required: ['kind'],
    properties: { kind: oneOf(['schedule', 'deadline']) },
    discriminator: { propertyName: 'kind' },
    oneOf: names.map((name) => ({ $ref: `${name}#` })),
  });
}
