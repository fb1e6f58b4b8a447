import Type, { type TSchema } from 'typebox';
import {
  EventBatchDocument,
  ExplainBody,
  OptionalReasonBody,
  ReplayBody,
  RetryBody,
  RotateSecretBody,
} from '../domain/requests/operations.ts';
import { DeadlinePolicyRequest, SchedulePolicyRequest } from '../domain/requests/policy.ts';
import {
  EndpointBody,
  EndpointPatchBody,
  EventBody,
  ReasonBody,
  ReminderBody,
  ReminderPatchBody,
} from '../domain/requests/schemas.ts';

/** The bodies of requests by their names in the document. */
const REQUESTS = {
  ReminderRequest: ReminderBody,
  ReminderPatch: ReminderPatchBody,
  Reason: ReasonBody,
  OptionalReason: OptionalReasonBody,
  EventRequest: EventBody,
  EventBatch: EventBatchDocument,
  SchedulePolicyRequest,
  DeadlinePolicyRequest,
  EndpointRequest: EndpointBody,
  EndpointPatch: EndpointPatchBody,
  RotateSecretRequest: RotateSecretBody,
  RetryRequest: RetryBody,
  ReplayRequest: ReplayBody,
  ExplainRequest: ExplainBody,
} as const satisfies Record<string, TSchema>;

/** Bodies that are taken as they stand, but for the endpoint they name. */
const EXAMPLES: { readonly [Name in keyof typeof REQUESTS]?: object } = {
  ReminderRequest: {
    idempotency_key: 'pol-7781-2027',
    contract_ref: 'pol-7781',
    endpoint: 'customer-notices',
    renewal_date: '2027-03-31',
    notice_period: 'P30D',
    jurisdiction: 'DE-BY',
    deadline: 'P14D',
    payload: { customer: 'C-1009' },
  },
  ReminderPatch: { renewal_date: '2027-06-30' },
  Reason: { reason: 'The contract was terminated.' },
  EventRequest: {
    idempotency_key: 'ord_10241-created',
    type: 'order.created',
    payload: { order: 'ord_10241', total: 12 },
  },
  EventBatch: {
    events: [{ idempotency_key: 'ord_10241-paid', type: 'order.paid', payload: { order: 'ord_10241' } }],
  },
  EndpointRequest: {
    name: 'customer-notices',
    url: 'https://notify.example.com/hooks',
    event_types: ['order.*'],
    policy: { kind: 'schedule', retry_schedule: [0, 30, 120], max_attempts: 5 },
  },
  EndpointPatch: { retry_schedule: [0, 10, 60, 300], max_attempts: 4 },
  RotateSecretRequest: { overlap_seconds: 86_400 },
  RetryRequest: { reason: 'The receiver was mended.' },
  ReplayRequest: { filter: { endpoint_id: 'customer-notices' }, dry_run: true },
  ExplainRequest: { renewal_date: '2027-03-31', notice_period: 'P30D', jurisdiction: 'DE-BY' },
};

export const REQUEST_SCHEMAS: readonly object[] = Object.entries(REQUESTS).map(([$id, schema]) => {
  const example = EXAMPLES[$id as keyof typeof REQUESTS];
  return { ...schema, ...(example === undefined ? {} : { examples: [example] }), $id };
});

/** A body by its name in the document. */
export function body(name: keyof typeof REQUESTS): TSchema {
  return Type.Unsafe({ $ref: `${name}#` });
}

/** The id in a path: what is no id of that kind is simply not found. */
export const ID_IN_PATH = Type.Object({ id: Type.String({ description: 'Its id.' }) });

/** An endpoint in a path, by id or name. */
export const ENDPOINT_IN_PATH = Type.Object({
  endpoint: Type.String({ description: "The endpoint's id or name." }),
});

/** The producer's key, for those that do not put it into the body. */
export const IDEMPOTENCY_HEADER = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      description:
        'Chosen by the caller, 1 to 200 of `A–Z a–z 0–9 _ - : . /`, bare or quoted; `idempotency_key` in the body counts first.',
      examples: ['ord_10241-created'],
    }),
  ),
});
