import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { Calendars } from '../domain/calendar/calendars.ts';
import type { EventAcceptor } from '../pipeline/accept/events.ts';
import type { ReminderAcceptor } from '../pipeline/accept/reminders.ts';
import type { DeliveryOperator } from '../pipeline/operate/deliveries.ts';
import type { EndpointOperator } from '../pipeline/operate/endpoints.ts';
import type { Rescheduler } from '../pipeline/timing/reschedule.ts';
import type { Scope } from '../store/keys.ts';
import type { Queryable } from '../store/pool.ts';
import type { Principal } from './auth.ts';
import type { ProblemCode } from './problems.ts';

/** What the API works with. */
export interface Api {
  readonly db: Queryable;
  readonly events: EventAcceptor;
  readonly reminders: ReminderAcceptor;
  readonly rescheduler: Rescheduler;
  readonly endpoints: EndpointOperator;
  readonly deliveries: DeliveryOperator;
  readonly calendars: Calendars;
  /** The evidence bundle of a delivery as text, to the byte; throws a Refusal where there is no such delivery. */
  readonly exportEvidence: (deliveryId: string, actor: string) => Promise<string>;
  /** Whether every endpoint is treated as one in shadow mode. */
  readonly shadowAll: boolean;
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
    /** What the call refuses, beside what all calls do. */
    readonly refuses?: readonly ProblemCode[];
    /** Any of these lets a key in. */
    readonly scopes?: readonly Scope[];
  }
}
