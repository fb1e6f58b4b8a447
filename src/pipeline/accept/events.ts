import { type Policy, parsePolicy, policyInUse } from '../../domain/policy.ts';
import { refuseField } from '../../domain/refusal.ts';
import { contentSha256, eventBody } from '../../domain/requests/body.ts';
import { firstDelayMs } from '../../domain/retry.ts';
import type { Traced } from '../../runtime/traces.ts';
import { type Endpoint, findEndpoints, listEndpointsForTypes } from '../../store/endpoints.ts';
import { type EventDelivery, findEventsByKey, type StoredEvent } from '../../store/events.ts';
import type { Queryable } from '../../store/pool.ts';
import { insertEvents, type NewDelivery, type NewEvent } from '../../store/sources.ts';
import { newId } from '../new-id.ts';
import { type AcceptorOptions, createAcceptor } from './acceptance.ts';

/** An event as a producer hands it in. */
export interface EventRequest extends Traced {
  readonly idempotencyKey: string;
  readonly type: string;
  readonly payload: unknown;
  /** An endpoint's id or name; undefined: every endpoint that wants the type. */
  readonly endpoint: string | undefined;
  readonly contractRef: string | undefined;
  readonly deliverAt: Date | undefined;
  readonly deadlineAt: Date | undefined;
  /** Who asks: a key, a command line user, an AMQP user. */
  readonly actor: string;
}

export interface EventResult {
  readonly eventId: string;
  readonly type: string;
  readonly duplicate: boolean;
  readonly deliveries: readonly EventDelivery[];
}

/** Accepts events: rows first, in one transaction, then the wake-ups. */
export interface EventAcceptor {
  /** Throws a Refusal for a request that is not accepted; nothing of it is stored then. */
  publish(request: EventRequest): Promise<EventResult>;
  close(): Promise<void>;
}

export function createEventAcceptor(options: AcceptorOptions): EventAcceptor {
  const acceptor = createAcceptor<EventRequest, PlannedEvent, StoredEvent, EventResult>(options, {
    name: 'event',
    async prepare(requests) {
      const targets = await findTargets(options.db, requests);
      return {
        plan: (request) => planEvent(request, targets, options.timeoutMs),
        contentOf: (request, endpointMeant) => contentOf(request, targets, endpointMeant),
        knows: (reference) => targets.byReference.has(reference),
      };
    },
    find: findEventsByKey,
    insert: insertEvents,
    idOf: (plan) => plan.eventId,
    deliveryIdsOf: (plan) => plan.deliveries.map((delivery) => delivery.deliveryId),
    answerPlan: (plan) => toResult(plan, false),
    answerStored: toResult,
    referenceOf: (request) => request.endpoint,
    endpointIdOf: (stored) => stored.answer[0]?.endpoint_id,
  });
  return { publish: (request) => acceptor.accept(request), close: () => acceptor.close() };
}

type PlannedEvent = NewEvent & { readonly answer: readonly EventDelivery[] };

function toResult({ eventId, type, answer }: PlannedEvent | StoredEvent, duplicate: boolean): EventResult {
  return { eventId, type, duplicate, deliveries: answer };
}

interface Targets {
  readonly now: Date;
  readonly byReference: ReadonlyMap<string, Endpoint>;
  readonly wanting: readonly Endpoint[];
}

async function findTargets(db: Queryable, requests: readonly EventRequest[]): Promise<Targets> {
  const references = [...new Set(requests.flatMap((r) => r.endpoint ?? []))];
  const types = requests.filter((r) => r.endpoint === undefined).map((r) => r.type);
  const named = await findEndpoints(db, references);
  const wanting =
    types.length === 0
      ? []
      : (await listEndpointsForTypes(db, [...new Set(types.flatMap(patternsOf))])).endpoints;
  return { ...named, wanting };
}

/** The patterns that match a type: `*`, itself, and every family it belongs to. */
export function patternsOf(type: string): string[] {
  const parts = type.split('.');
  return ['*', type, ...parts.map((_, i) => `${parts.slice(0, i + 1).join('.')}.*`).slice(0, -1)];
}

function planEvent(request: EventRequest, targets: Targets, timeoutMs: number): PlannedEvent {
  const { now } = targets;
  const endpoints = endpointsOf(request, targets);
  requireRoom(request, { now, delayMs: 0, timeoutMs });
  const eventId = newId('evt');
  const deliveries: NewDelivery[] = [];
  const answer: EventDelivery[] = [];
  for (const endpoint of endpoints) {
    if (endpoint.status === 'disabled') {
      answer.push({ endpoint_id: endpoint.endpointId, state: 'skipped' });
      continue;
    }
    const held = endpoint.status === 'paused';
    const delayMs = firstDelayMs(policyOf(request, endpoint));
    requireRoom(request, { now, delayMs, timeoutMs, endpoint });
    const deliveryId = newId('dlv');
    deliveries.push({
      deliveryId,
      endpointId: endpoint.endpointId,
      idempotencyKey: `${request.idempotencyKey}:${endpoint.endpointId}`,
      ...firstDue(request, delayMs),
      ...(request.deadlineAt === undefined ? {} : { deadlineAt: request.deadlineAt }),
      held,
    });
    answer.push({ delivery_id: deliveryId, endpoint_id: endpoint.endpointId, state: held ? 'held' : 'due' });
  }
  return {
    eventId,
    idempotencyKey: request.idempotencyKey,
    contentSha256: contentOf(request, targets),
    type: request.type,
    ...(request.contractRef === undefined ? {} : { contractRef: request.contractRef }),
    answer,
    body: eventBody({ type: request.type, at: now, payload: request.payload }),
    deliveries,
    actor: request.actor,
    trail: JSON.stringify({
      event_id: eventId,
      type: request.type,
      idempotency_key: request.idempotencyKey,
      deliver_at: request.deliverAt,
      deadline_at: request.deadlineAt,
    }),
  };
}

/** Refuses what could not be sent in time: `delayMs` is what the endpoint waits before the first attempt. */
function requireRoom(
  { deliverAt, deadlineAt }: EventRequest,
  first: { now: Date; delayMs: number; timeoutMs: number; endpoint?: Endpoint },
): void {
  if (deadlineAt === undefined) return;
  const { now, delayMs, timeoutMs, endpoint } = first;
  const startAtMs = Math.max(now.getTime(), (deliverAt ?? now).getTime() + delayMs);
  if (startAtMs <= deadlineAt.getTime() - timeoutMs) return;
  const why = delayMs > 0 && endpoint ? `endpoint ${endpoint.name} first waits ${delayMs / 1000} s: ` : '';
  throw refuseField(
    '/deadline_at',
    `${why}no call of up to ${timeoutMs} ms fits between ${new Date(startAtMs).toISOString()} and deadline_at: choose a later one`,
    'window_closed',
  );
}

function policyOf(request: EventRequest, endpoint: Endpoint): Policy {
  return policyInUse(endpoint.policy === undefined ? undefined : parsePolicy(endpoint.policy), {
    kind: 'event',
    hasDeadline: request.deadlineAt !== undefined,
  });
}

function firstDue({ deliverAt }: EventRequest, delayMs: number): Pick<NewDelivery, 'dueAt' | 'delayMs'> {
  return deliverAt === undefined ? { delayMs } : { dueAt: new Date(deliverAt.getTime() + delayMs) };
}

function endpointsOf(request: EventRequest, targets: Targets): readonly Endpoint[] {
  if (request.endpoint === undefined) {
    const patterns = new Set(patternsOf(request.type));
    return targets.wanting.filter((e) => e.eventTypes.some((pattern) => patterns.has(pattern)));
  }
  const endpoint = targets.byReference.get(request.endpoint);
  if (endpoint !== undefined) return [endpoint];
  throw refuseField('/endpoint', `there is no endpoint ${request.endpoint}: create it first`, 'not_found');
}

/** What matters of an event: who wanted it when it was accepted does not. */
function contentOf(request: EventRequest, { byReference }: Targets, endpointMeant?: string): Buffer {
  return contentSha256({
    type: request.type,
    payload: request.payload ?? null,
    endpoint:
      request.endpoint === undefined
        ? null
        : (byReference.get(request.endpoint)?.endpointId ?? endpointMeant ?? request.endpoint),
    contract_ref: request.contractRef ?? null,
    deliver_at: request.deliverAt?.toISOString() ?? null,
    deadline_at: request.deadlineAt?.toISOString() ?? null,
  });
}
