import Type from 'typebox';
import { Refusal } from '../../domain/refusal.ts';
import { EventBatchBody } from '../../domain/requests/operations.ts';
import type { EventResult } from '../../pipeline/accept/events.ts';
import { readBody, readEvent } from '../../pipeline/accept/read-requests.ts';
import { eventView } from '../../pipeline/views.ts';
import { listDeliveryStates } from '../../store/deliveries.ts';
import { findEvent } from '../../store/events.ts';
import { Event, Problem, StoredEvent } from '../answers.ts';
import { answer, refTo } from '../describe.ts';
import type { Api, ApiServer } from '../parts.ts';
import { toProblem } from '../problems.ts';
import { readIdempotencyKey } from '../read.ts';
import { body, ID_IN_PATH, IDEMPOTENCY_HEADER } from '../requests.ts';

export function addEventRoutes(app: ApiServer, api: Api): void {
  app.post('/events', {
    config: {
      scopes: ['publish'],
      refuses: ['idempotency_key_missing', 'not_found', 'idempotency_key_reused', 'window_closed'],
    },
    schema: {
      operationId: 'publishEvent',
      tags: ['events'],
      summary: 'Publish an event',
      headers: IDEMPOTENCY_HEADER,
      body: body('EventRequest'),
      response: { 202: answer(Event, 'It is stored; `duplicate` says that it was before.') },
    },
    handler: async (request, reply) => {
      const event = await publish(request.body, {
        outerKey: readIdempotencyKey(request),
        actor: request.principal.actor,
      });
      return reply.code(202).send(eventView(event));
    },
  });

  app.post('/events/batch', {
    config: { scopes: ['publish'] },
    bodyLimit: api.maxBatchBytes,
    schema: {
      operationId: 'publishEvents',
      tags: ['events'],
      summary: 'Publish up to 500 events',
      description:
        'Each is accepted or refused on its own. A fault of duepost fails the call as a whole: repeat it.',
      body: body('EventBatch'),
      response: {
        202: Type.Unsafe({
          description: 'An event or a problem for each, in order.',
          content: {
            'application/json': {
              schema: Type.Object({ data: Type.Array(Type.Union([refTo(Event), refTo(Problem)])) }),
            },
          },
        }),
      },
    },
    handler: async (request, reply) => {
      const { events } = readBody<EventBatchBody>(EventBatchBody, request.body);
      const { actor } = request.principal;
      const results = await Promise.allSettled(
        events.map((event: unknown) => publish(event, { outerKey: undefined, actor })),
      );
      const data = results.map((result) => {
        if (result.status === 'fulfilled') return eventView(result.value);
        if (result.reason instanceof Refusal) return toProblem(result.reason);
        throw result.reason;
      });
      return reply.code(202).send({ data });
    },
  });

  app.get('/events/:id', {
    config: { scopes: ['read'], refuses: ['not_found'] },
    schema: {
      operationId: 'getEvent',
      tags: ['events'],
      summary: 'Look at an event and where its deliveries stand',
      params: ID_IN_PATH,
      response: { 200: answer(StoredEvent, 'The event.') },
    },
    handler: async (request) => {
      const event = await findEvent(api.db, request.params.id);
      if (event === undefined) throw new Refusal('not_found', `there is no event ${request.params.id}`);
      const states = await listDeliveryStates(
        api.db,
        event.answer.flatMap((d) => d.delivery_id ?? []),
      );
      return {
        ...eventView({ ...event, duplicate: false, deliveries: event.answer }),
        deliveries: event.answer.map((d) => ({ ...d, state: states.get(d.delivery_id ?? '') ?? d.state })),
        idempotency_key: event.idempotencyKey,
        contract_ref: event.contractRef ?? null,
        created_at: event.createdAt.toISOString(),
      };
    },
  });

  async function publish(
    body: unknown,
    context: { readonly outerKey: string | undefined; readonly actor: string },
  ): Promise<EventResult> {
    return api.events.publish(readEvent(body, { ...context, maxPayloadBytes: api.maxPayloadBytes }));
  }
}
