import Type from 'typebox';
import { Refusal } from '../../domain/refusal.ts';
import { oneOf } from '../../domain/requests/one-of.ts';
import { OptionalReasonBody, RetryBody } from '../../domain/requests/operations.ts';
import { ContractRef, EndpointReference, Instant } from '../../domain/requests/schemas.ts';
import { STATES } from '../../domain/state.ts';
import { readInstant } from '../../pipeline/accept/read-requests.ts';
import { findEndpointId } from '../../pipeline/endpoint-reference.ts';
import { createOperator } from '../../pipeline/operate/operator.ts';
import { attemptView, deliveryView } from '../../pipeline/views.ts';
import { listDeliveries } from '../../store/deliveries.ts';
import { findDelivery } from '../../store/find-delivery.ts';
import { DeliveryPage, DeliveryWithAttempts } from '../answers.ts';
import { answer } from '../describe.ts';
import { readPage } from '../page.ts';
import type { Api, ApiServer } from '../parts.ts';
import { PAGE_MEMBERS, readOptionalBody } from '../read.ts';
import { body, ID_IN_PATH } from '../requests.ts';

const DueAfter = Type.String({ ...Instant, description: 'Due at this instant or later; RFC 3339.' });
const DueBefore = Type.String({ ...Instant, description: 'Due before this instant; RFC 3339.' });

export function addDeliveryRoutes(app: ApiServer, api: Api): void {
  app.get('/deliveries', {
    config: { scopes: ['read'], refuses: ['not_found', 'too_broad'] },
    schema: {
      operationId: 'listDeliveries',
      tags: ['deliveries'],
      summary: 'List deliveries, newest first',
      querystring: Type.Object(
        {
          state: Type.Optional(oneOf([...STATES], { description: 'In this state.' })),
          endpoint_id: Type.Optional(EndpointReference),
          contract_ref: Type.Optional(ContractRef),
          due_after: Type.Optional(DueAfter),
          due_before: Type.Optional(DueBefore),
          ...PAGE_MEMBERS,
        },
        { additionalProperties: false },
      ),
      response: { 200: answer(DeliveryPage, 'A page, without attempts.') },
    },
    handler: async (request) => {
      const { query } = request;
      const filter = {
        state: query.state,
        endpointId: await findEndpointId(api.db, query.endpoint_id, '/endpoint_id'),
        contractRef: query.contract_ref,
        dueAfter: readInstant(query.due_after, '/due_after'),
        dueBefore: readInstant(query.due_before, '/due_before'),
      };
      return readPage({
        name: 'deliveries',
        query,
        read: (after, limit) => listDeliveries(api.db, filter, { before: after && String(after[0]), limit }),
        positionOf: (delivery) => [delivery.deliveryId],
        show: deliveryView,
      });
    },
  });

  app.get('/deliveries/:id', {
    config: { scopes: ['read'], refuses: ['not_found'] },
    schema: {
      operationId: 'getDelivery',
      tags: ['deliveries'],
      summary: 'Look at a delivery and its attempts',
      params: ID_IN_PATH,
      response: { 200: answer(DeliveryWithAttempts, 'The delivery.') },
    },
    handler: (request) => show(request.params.id),
  });

  app.post('/deliveries/:id/retry', {
    config: {
      scopes: ['operate'],
      refuses: [
        'not_found',
        'already_delivered',
        'transition_not_allowed',
        'endpoint_disabled',
        'window_closed',
      ],
    },
    schema: {
      operationId: 'retryDelivery',
      tags: ['deliveries'],
      summary: 'Send a delivery now, or again',
      description:
        'One that waits is due at once, by an attempt on top of what its policy gives. One that is dead-lettered or cancelled begins a new cycle: same key, same bytes, new budget, due at once, or at `scheduled_at` if that is still ahead. One that was delivered is never sent again.',
      params: ID_IN_PATH,
      body: body('RetryRequest'),
      response: { 202: answer(DeliveryWithAttempts, 'It is due.') },
    },
    handler: async (request, reply) => {
      const { reason, force = false } = readOptionalBody<RetryBody>(RetryBody, request.body);
      await api.deliveries.retry(request.params.id, {
        ...createOperator(request.principal.actor, reason),
        force,
      });
      return reply.code(202).send(await show(request.params.id));
    },
  });

  app.post('/deliveries/:id/cancel', {
    config: { scopes: ['operate'], refuses: ['not_found', 'already_delivered', 'transition_not_allowed'] },
    schema: {
      operationId: 'cancelDelivery',
      tags: ['deliveries'],
      summary: 'Cancel a delivery that waits',
      params: ID_IN_PATH,
      body: body('OptionalReason'),
      response: { 200: answer(DeliveryWithAttempts, 'Cancelled.') },
    },
    handler: async (request) => {
      const { reason } = readOptionalBody<OptionalReasonBody>(OptionalReasonBody, request.body);
      await api.deliveries.cancel(request.params.id, createOperator(request.principal.actor, reason));
      return show(request.params.id);
    },
  });

  async function show(deliveryId: string): Promise<Record<string, unknown>> {
    const found = await findDelivery(api.db, deliveryId);
    if (found === undefined) throw new Refusal('not_found', `there is no delivery ${deliveryId}`);
    return { ...deliveryView(found.delivery), attempts: found.attempts.map(attemptView) };
  }
}
