import Type from 'typebox';
import { Refusal } from '../../domain/refusal.ts';
import { OptionalReasonBody, RotateSecretBody } from '../../domain/requests/operations.ts';
import { EndpointBody, EndpointPatchBody } from '../../domain/requests/schemas.ts';
import { SECRET_OVERLAP_SECONDS } from '../../domain/signing.ts';
import { readBody } from '../../pipeline/accept/read-requests.ts';
import { createOperator, type Operator } from '../../pipeline/operate/operator.ts';
import { TEST_TYPE, testEndpoint } from '../../pipeline/operate/test-endpoint.ts';
import { endpointView, eventView } from '../../pipeline/views.ts';
import { findEndpoint, listEndpoints } from '../../store/endpoints.ts';
import { Endpoint, EndpointPage, EndpointWithSecret, Event } from '../answers.ts';
import { answer } from '../describe.ts';
import { readPage } from '../page.ts';
import type { Api, ApiServer } from '../parts.ts';
import { PAGE_MEMBERS, readIdempotencyKey, readOptionalBody } from '../read.ts';
import { body, ENDPOINT_IN_PATH, IDEMPOTENCY_HEADER } from '../requests.ts';

export function addEndpointRoutes(app: ApiServer, api: Api): void {
  app.post('/endpoints', {
    config: { scopes: ['admin'], refuses: ['name_taken', 'url_not_allowed'] },
    schema: {
      operationId: 'createEndpoint',
      tags: ['endpoints'],
      summary: 'Create an endpoint',
      body: body('EndpointRequest'),
      response: {
        201: answer(EndpointWithSecret, 'Created; its secret is shown this once.', {
          Location: Type.String({ description: 'Its path.' }),
        }),
      },
    },
    handler: async (request, reply) => {
      const { endpoint, secret } = await api.endpoints.create(
        readBody<EndpointBody>(EndpointBody, request.body),
        { actor: request.principal.actor },
      );
      return reply
        .code(201)
        .header('location', `/v1/endpoints/${endpoint.endpointId}`)
        .send({ ...endpointView(endpoint), secret });
    },
  });

  app.get('/endpoints', {
    config: { scopes: ['read'] },
    schema: {
      operationId: 'listEndpoints',
      tags: ['endpoints'],
      summary: 'List endpoints, oldest first',
      querystring: Type.Object(PAGE_MEMBERS, { additionalProperties: false }),
      response: { 200: answer(EndpointPage, 'A page.') },
    },
    handler: (request) =>
      readPage({
        name: 'endpoints',
        query: request.query,
        read: (after, limit) => listEndpoints(api.db, { after: String(after?.[0] ?? ''), limit }),
        positionOf: (endpoint) => [endpoint.endpointId],
        show: (endpoint) => endpointView(endpoint),
      }),
  });

  app.get('/endpoints/:endpoint', {
    config: { scopes: ['read'], refuses: ['not_found'] },
    schema: {
      operationId: 'getEndpoint',
      tags: ['endpoints'],
      summary: 'Look at an endpoint',
      params: ENDPOINT_IN_PATH,
      response: { 200: answer(Endpoint, 'The endpoint.') },
    },
    handler: async ({ params }) => {
      const endpoint = await findEndpoint(api.db, params.endpoint);
      if (endpoint === undefined) throw new Refusal('not_found', `there is no endpoint ${params.endpoint}`);
      return endpointView(endpoint);
    },
  });

  app.patch('/endpoints/:endpoint', {
    config: { scopes: ['admin'], refuses: ['not_found', 'name_taken', 'url_not_allowed'] },
    schema: {
      operationId: 'changeEndpoint',
      tags: ['endpoints'],
      summary: 'Change an endpoint (JSON merge patch, RFC 7396)',
      params: ENDPOINT_IN_PATH,
      body: body('EndpointPatch'),
      response: { 200: answer(Endpoint, 'Changed; what waits follows at its next decision.') },
    },
    handler: async (request) =>
      endpointView(
        await api.endpoints.patch(
          request.params.endpoint,
          readBody<EndpointPatchBody>(EndpointPatchBody, request.body),
          { actor: request.principal.actor },
        ),
      ),
  });

  app.delete('/endpoints/:endpoint', {
    config: { scopes: ['admin'], refuses: ['not_found'] },
    schema: {
      operationId: 'deleteEndpoint',
      tags: ['endpoints'],
      summary: 'Delete an endpoint; what waits for it is dead-lettered',
      params: ENDPOINT_IN_PATH,
      response: { 204: Type.Null({ description: 'Deleted.' }) },
    },
    handler: async (request, reply) => {
      await api.endpoints.remove(request.params.endpoint, operatorOf(request));
      return reply.code(204).send(null);
    },
  });

  app.post('/endpoints/:endpoint/pause', {
    config: { scopes: ['operate'], refuses: ['not_found', 'transition_not_allowed'] },
    schema: {
      operationId: 'pauseEndpoint',
      tags: ['endpoints'],
      summary: 'Pause an endpoint; what waits for it is held',
      params: ENDPOINT_IN_PATH,
      body: body('OptionalReason'),
      response: { 200: answer(Endpoint, 'Paused.') },
    },
    handler: async (request) =>
      endpointView(await api.endpoints.pause(request.params.endpoint, operatorOf(request))),
  });

  app.post('/endpoints/:endpoint/resume', {
    config: { scopes: ['operate'], refuses: ['not_found'] },
    schema: {
      operationId: 'resumeEndpoint',
      tags: ['endpoints'],
      summary: 'Resume an endpoint that is paused or disabled; what was held is due again',
      params: ENDPOINT_IN_PATH,
      body: body('OptionalReason'),
      response: { 200: answer(Endpoint, 'Active.') },
    },
    handler: async (request) =>
      endpointView(await api.endpoints.resume(request.params.endpoint, operatorOf(request))),
  });

  app.post('/endpoints/:endpoint/rotate-secret', {
    config: { scopes: ['admin'], refuses: ['not_found'] },
    schema: {
      operationId: 'rotateSecret',
      tags: ['endpoints'],
      summary: 'Give an endpoint a new secret; the old one signs beside it for a while',
      params: ENDPOINT_IN_PATH,
      body: body('RotateSecretRequest'),
      response: { 200: answer(EndpointWithSecret, 'Rotated; the new secret is shown this once.') },
    },
    handler: async (request) => {
      const { overlap_seconds = SECRET_OVERLAP_SECONDS, reason } = readOptionalBody<RotateSecretBody>(
        RotateSecretBody,
        request.body,
      );
      const { endpoint, secret } = await api.endpoints.rotateSecret(
        request.params.endpoint,
        overlap_seconds * 1000,
        createOperator(request.principal.actor, reason),
      );
      return { ...endpointView(endpoint), secret };
    },
  });

  app.post('/endpoints/:endpoint/test', {
    config: { scopes: ['operate'], refuses: ['not_found', 'endpoint_disabled', 'idempotency_key_reused'] },
    schema: {
      operationId: 'testEndpoint',
      tags: ['endpoints'],
      summary: `Send an event of type \`${TEST_TYPE}\` to this endpoint, signed and retried like any other`,
      params: ENDPOINT_IN_PATH,
      headers: IDEMPOTENCY_HEADER,
      response: { 202: answer(Event, 'Its delivery shows what became of it.') },
    },
    handler: async (request, reply) => {
      const event = await testEndpoint(api, {
        endpoint: request.params.endpoint,
        idempotencyKey: readIdempotencyKey(request),
        actor: request.principal.actor,
      });
      return reply.code(202).send(eventView(event));
    },
  });
}

function operatorOf(request: {
  readonly body: unknown;
  readonly principal: { readonly actor: string };
}): Operator {
  const { reason } = readOptionalBody<OptionalReasonBody>(OptionalReasonBody, request.body);
  return createOperator(request.principal.actor, reason);
}
