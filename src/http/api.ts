import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { Calendars } from '../domain/calendar/calendars.ts';
import { Refusal } from '../domain/refusal.ts';
import type { EventAcceptor } from '../pipeline/accept-events.ts';
import type { ReminderAcceptor } from '../pipeline/accept-reminders.ts';
import type { DeliveryOperator } from '../pipeline/operate-deliveries.ts';
import type { EndpointOperator } from '../pipeline/operate-endpoints.ts';
import type { Rescheduler } from '../pipeline/reschedule.ts';
import type { Scope } from '../store/keys.ts';
import type { Queryable } from '../store/pool.ts';
import { REFUSED } from './answers.ts';
import { createAuthenticator, type Principal, requireScope } from './auth.ts';
import { createRateLimit } from './rate-limit.ts';
import { NO_QUERY } from './read.ts';
import { REQUEST_SCHEMAS } from './requests.ts';
import { addAuditRoutes } from './routes/audit.ts';
import { addCalendarRoutes } from './routes/calendars.ts';
import { addDeadLetterRoutes } from './routes/dead-letters.ts';
import { addDeliveryRoutes } from './routes/deliveries.ts';
import { addEndpointRoutes } from './routes/endpoints.ts';
import { addEventRoutes } from './routes/events.ts';
import { addReminderRoutes } from './routes/reminders.ts';

/** What the API works with. */
export interface Api {
  readonly db: Queryable;
  readonly events: EventAcceptor;
  readonly reminders: ReminderAcceptor;
  readonly rescheduler: Rescheduler;
  readonly endpoints: EndpointOperator;
  readonly deliveries: DeliveryOperator;
  readonly calendars: Calendars;
  readonly maxPayloadBytes: number;
  /** Of a whole request; a batch may have `maxBatchBytes`. */
  readonly maxBodyBytes: number;
  readonly maxBatchBytes: number;
  /** 0: no limit. */
  readonly rateLimitPerMinute: number;
  /** Ends what takes long when the process stops. */
  readonly signal: AbortSignal;
}

export type ApiServer = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

declare module 'fastify' {
  interface FastifyRequest {
    /** Whoever asks; set before any handler of the API. */
    principal: Principal;
  }
  interface FastifyContextConfig {
    /** Any of these lets a key in. */
    readonly scopes?: readonly Scope[];
  }
}

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
        route.schema = {
          querystring: NO_QUERY,
          security: [{ key: [] }],
          ...route.schema,
          response: { ...(route.schema?.response as object), ...REFUSED },
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
    },
    { prefix: '/v1' },
  );
}
