import { randomBytes } from 'node:crypto';
import type { GetMessage } from 'amqplib';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { type DeliveryOutcome, findOutcome } from '../../src/cli/drills/outcome.ts';
import type { EventRequest, EventResult } from '../../src/pipeline/accept/events.ts';
import {
  type PracticeOptions,
  type PracticeReceiver,
  startPracticeReceiver,
} from '../../src/receiver/practice.ts';
import { type OwnProcess, startOwnProcess } from '../../src/runtime/own-process.ts';
import type { TestProduct } from './product.ts';
import { until } from './until.ts';

/** Settings under which a flow shows what it does within seconds. */
export const QUICK: Readonly<Record<string, string>> = {
  DUEPOST_EGRESS_TIMEOUT_MS: '2000',
  DUEPOST_CLAIM_LEASE_MS: '4000',
  DUEPOST_RECONCILER_INTERVAL_MS: '100',
  DUEPOST_RECONCILER_GRACE_MS: '500',
  DUEPOST_FEEDER_INTERVAL_MS: '200',
};

/** A retry a second later, as often as it takes. */
export const PERSISTENT = { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 20 };

/** An endpoint, and the receiver behind it. */
export interface Destination {
  readonly endpointId: string;
  readonly name: string;
  readonly secret: string;
  readonly receiver: PracticeReceiver;
}

/** Makes an endpoint with a receiver behind it; the caller closes the receiver. */
export async function openDestination(
  product: TestProduct,
  { policy = PERSISTENT, ...options }: PracticeOptions & { readonly policy?: object | undefined } = {},
): Promise<Destination> {
  const receiver = await startPracticeReceiver(options);
  const name = `notices-${randomBytes(4).toString('hex')}`;
  const { endpoint, secret } = await product.endpoints.create(
    { name, url: receiver.url, policy },
    { actor: 'test' },
  );
  receiver.setSecrets([secret]);
  return { endpointId: endpoint.endpointId, name, secret, receiver };
}

/** Publishes an event to one destination. */
export function publishTo(
  product: TestProduct,
  { name }: Pick<Destination, 'name'>,
  changes: Partial<EventRequest> = {},
): Promise<EventResult & { readonly deliveryId: string }> {
  return product.events
    .publish({
      idempotencyKey: randomBytes(8).toString('hex'),
      type: 'order.created',
      payload: { total: 12 },
      endpoint: name,
      contractRef: undefined,
      deliverAt: undefined,
      deadlineAt: undefined,
      actor: 'test',
      ...changes,
    })
    .then((event) => ({ ...event, deliveryId: event.deliveries[0]?.delivery_id ?? 'skipped' }));
}

/** The instant so many milliseconds from now. */
export function inMs(ms: number): Date {
  return new Date(Date.now() + ms);
}

export function outcomeOf(product: TestProduct, deliveryId: string): Promise<DeliveryOutcome> {
  return findOutcome(product.parts.pool, deliveryId);
}

/** Waits until a delivery is in that state. */
export function reaches(product: TestProduct, deliveryId: string, state: string): Promise<DeliveryOutcome> {
  return until(`${deliveryId} is ${state}`, async () => {
    const outcome = await outcomeOf(product, deliveryId);
    return outcome.state === state && outcome;
  });
}

/** Puts a body into the queue of due wake-ups, as anybody with access to the broker could. */
export function forge(product: TestProduct, body: object | string | Buffer): Promise<void> {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return product.parts.publisher.publish({
    exchange: namesOf(product.config.broker.prefix).wake,
    routingKey: 'now',
    body: Buffer.from(text),
  });
}

/**
 * Waits until every wake-up published before is dealt with: one that comes behind them was, and no message of the
 * queue is left.
 */
export async function wakeUpsAreThrough(product: TestProduct, destination: Destination): Promise<void> {
  const { deliveryId } = await publishTo(product, destination);
  await reaches(product, deliveryId, 'delivered');
  const { deliveries } = namesOf(product.config.broker.prefix);
  await until('an empty queue', async () => (await product.parts.publisher.countReady(deliveries)) === 0);
}

/** Takes everything that is in a queue. */
export async function drainQueue(product: TestProduct, queue: string): Promise<GetMessage[]> {
  return withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    const messages: GetMessage[] = [];
    for (;;) {
      const message = await channel.get(queue, { noAck: true });
      if (message === false) return messages;
      messages.push(message);
    }
  });
}

/** Waits for the first message of a queue, and takes it. */
export function takeMessage(product: TestProduct, queue: string): Promise<GetMessage> {
  return until(`a message in ${queue}`, async () => (await drainQueue(product, queue))[0]);
}

/** Empties every queue of the product. */
export async function purgeEverything(product: TestProduct): Promise<void> {
  const names = namesOf(product.config.broker.prefix);
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    for (const queue of [names.deliveries, ...names.tiers]) await channel.purgeQueue(queue);
  });
}

/** Starts a process that serves roles on the same database and prefix, and waits until it does. */
export async function startProcess(
  product: TestProduct,
  roles: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<OwnProcess> {
  const process = startOwnProcess(['start', '--roles', roles], { ...product.env, ...variables });
  await process.heard(/\bstarted\b.*\broles\b/);
  return process;
}
