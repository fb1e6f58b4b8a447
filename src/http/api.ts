import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../domain/refusal.ts';
import { createAuthenticator, requireScope } from './auth.ts';
import type { Api } from './parts.ts';
import { createRateLimit } from './rate-limit.ts';
import { NO_QUERY } from './read.ts';
import { refusals } from './refusals.ts';
import { REQUEST_SCHEMAS } from './requests.ts';
import { addAuditRoutes } from './routes/audit.ts';
import { addCalendarRoutes } from './routes/calendars.ts';
import { addDeadLetterRoutes } from './routes/dead-letters.ts';
import { addDeliveryRoutes } from './routes/deliveries.ts';
import { addEndpointRoutes } from './routes/endpoints.ts';
import { addEventRoutes } from './routes/events.ts';
import { addReminderRoutes } from './routes/reminders.ts';
import { addShadowRoutes } from './routes/shadow.ts';

/** Adds `/v1`: every call behind a key with the right scope, each key within its rate. */
export async function addApi(app: FastifyInstance, api: Api): Promise<void> {
  const authenticator = createAuthenticator(api.db);
  const rateLimit = createRateLimit(api.rateLimitPerMinute);
  for (const schema of REQUEST_SCHEMAS) app.addSchema(schema);
  await app.register(
    async (instance) => {
      const v1 = instance.withTypeProvider<TypeBoxTypeProvider>();
      v1.decorateRequest('principal', undefined as never);
      v1.addHook('onRoute', (route) => {
        const { scopes = ['admin'], refuses = [] } = route.config ?? {};
        const { schema } = route;
        const scope = `Needs a key with the scope ${scopes.map((name) => `\`${name}\``).join(' or ')}.`;
        route.schema = {
          querystring: NO_QUERY,
          security: [{ key: [] }],
          ...schema,
          description: [schema?.description, scope].filter((text) => text !== undefined).join(' '),
          response: {
            ...(schema?.response as object),
            ...refusals(refuses, { hasBody: schema?.body !== undefined }),
          },
        };
      });
      v1.addHook('onRequest', async (request, reply) => {
        reply.header('cache-control', 'no-store');
        request.principal = await authenticator.authenticate(request.raw);
        requireScope(request.principal, request.routeOptions.config.scopes ?? ['admin']);
        const waitSeconds = rateLimit.take(request.principal.keyId);
        if (waitSeconds === undefined) return;
        reply.header('retry-after', String(waitSeconds));
        throw new Refusal(
          'rate_limited',
          `this key may make ${api.rateLimitPerMinute} requests a minute: wait ${waitSeconds} s`,
        );
      });
      addReminderRoutes(v1, api);
      addEventRoutes(v1, api);
      addEndpointRoutes(v1, api);
      addDeliveryRoutes(v1, api);
      addDeadLetterRoutes(v1, api);
      addAuditRoutes(v1, api);
      addCalendarRoutes(v1, api);
      addShadowRoutes(v1, api);
    },
    { prefix: '/v1' },
  );
}
