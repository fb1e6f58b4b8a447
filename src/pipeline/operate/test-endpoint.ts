import { randomUUID } from 'node:crypto';
import { Refusal } from '../../domain/refusal.ts';
import { findEndpoint } from '../../store/endpoints.ts';
import type { Queryable } from '../../store/pool.ts';
import type { EventAcceptor, EventResult } from '../accept/events.ts';

/** What a receiver sees as the type of a test. */
export const TEST_TYPE = 'duepost.test';

/**
 * Publishes an event to one endpoint alone, signed and retried like any other.
 *
 * @param endpoint  its id or name
 * @param idempotencyKey  undefined: this test is no other
 * @throws Refusal where there is no such endpoint, or it is disabled
 */
export async function testEndpoint(
  { db, events }: { readonly db: Queryable; readonly events: EventAcceptor },
  request: {
    readonly endpoint: string;
    readonly idempotencyKey: string | undefined;
    readonly actor: string;
  },
): Promise<EventResult> {
  const endpoint = await findEndpoint(db, request.endpoint);
  if (endpoint === undefined) throw new Refusal('not_found', `there is no endpoint ${request.endpoint}`);
  if (endpoint.status === 'disabled') {
    throw new Refusal('endpoint_disabled', `${endpoint.name} is disabled: resume it first`);
  }
  return events.publish({
    idempotencyKey: request.idempotencyKey ?? `${TEST_TYPE}:${randomUUID()}`,
    type: TEST_TYPE,
    payload: { endpoint_id: endpoint.endpointId, text: 'A test by an operator of duepost.' },
    endpoint: endpoint.endpointId,
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: request.actor,
  });
}
