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

export const REQUEST_SCHEMAS: readonly object[] = Object.entries(REQUESTS).map(([$id, schema]) => ({
  ...schema,
  $id,
}));

/** A body by its name in the document. */
export function body(name: keyof typeof REQUESTS): TSchema {
  return Type.Unsafe({ $ref: `${name}#` });
}

/** The id in a path: what is no id of that kind is simply not found. */
export const ID_IN_PATH = Type.Object({ id: Type.String() });

/** An endpoint in a path, by id or name. */
export const ENDPOINT_IN_PATH = Type.Object({
  endpoint: Type.String({ description: "The endpoint's id or name." }),
});

/** The producer's key, for those that do not put it into the body. */
export const IDEMPOTENCY_HEADER = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({ description: 'Bare or quoted; `idempotency_key` in the body counts first.' }),
  ),
});
