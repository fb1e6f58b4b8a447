import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { PublishError } from '../../src/broker/outgoing.ts';
import { connectPublisher } from '../../src/broker/publisher.ts';
import { namesOf } from '../../src/broker/topology.ts';
import type { EventRequest } from '../../src/pipeline/accept/events.ts';
import { createReconciler, type ReconcileOptions } from '../../src/pipeline/reconcile/reconcile.ts';
import { resetWatermark } from '../../src/store/due.ts';
import { type Move, moveDeliveries } from '../../src/store/moves.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import { claimOne, settlementOf } from '../support/attempts.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import {
  type Destination,
  drainQueue,
  forge,
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  purgeEverything,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct();
});

beforeEach(async () => {
  destination = await openDestination(product);
  await destination.receiver.close();
});

afterEach(async () => {
  const { rows } = await product.parts.pool.query(
    'select delivery_id from delivery where due_at is not null',
  );
  await move(
    'cancel',
    rows.map((row) => row.delivery_id),
  );
});

afterAll(() => product.close());

function reconcilerWith(changes: Partial<ReconcileOptions> = {}): ReturnType<typeof createReconciler> {
  return createReconciler({
    ...product.parts,
    log: product.recorded.log,
    deliveriesQueue: namesOf(product.config.broker.prefix).deliveries,
    graceMs: 0,
    timeoutMs: 2_000,
    signal: new AbortController().signal,
    ...changes,
  });
}

/** Deliveries that are overdue and have no wake-up. */
async function overdue(...changes: Partial<EventRequest>[]): Promise<string[]> {
  const events = await Promise.all(
    changes.map((change) => publishTo(product, destination, { deliverAt: inMs(-60_000), ...change })),
  );
  await product.parts.announcer.drain();
  await purgeEverything(product);
  await resetWatermark(product.parts.pool);
  return events.map((event) => event.deliveryId);
}

async function move(how: Move, deliveryIds: readonly string[]): Promise<void> {
  await moveDeliveries(product.parts.pool, {
    move: how,
    deliveryIds,
    actor: 'test',
    trail: '{}',
    timeoutMs: 2_000,
  });
}

async function setDeadline(deliveryId: string, inMs: number): Promise<void> {
  await product.parts.pool.query(
    `update delivery set deadline_at = now() + $2 * interval '1 millisecond' where delivery_id = $1`,
    [deliveryId, inMs],
  );
}

async function statesOf(deliveryIds: readonly string[]): Promise<string[]> {
  const outcomes = await Promise.all(deliveryIds.map((id) => outcomeOf(product, id)));
  return outcomes.map(({ state, deadReason }) =>
    deadReason === undefined ? state : `${state}: ${deadReason}`,
  );
}

/** The deliveries whose wake-ups wait for a worker. */
async function announced(): Promise<string[]> {
  const messages = await drainQueue(product, namesOf(product.config.broker.prefix).deliveries);
  return messages.map((m) => (JSON.parse(m.content.toString()) as { delivery_id: string }).delivery_id);
}

test('what is held at an active endpoint is released and announced; what a pause holds stays held', async () => {
  const stranded = await overdue({}, {});
  await move('hold', stranded);
  destination = await openDestination(product);
  await destination.receiver.close();
  const paused = await overdue({});
  await product.endpoints.pause(destination.name, { actor: 'test' });

  expect(await reconcilerWith().reconcile()).toMatchObject({ released: 2, announced: 0 });
  expect(await statesOf([...stranded, ...paused])).toEqual(['due', 'due', 'held']);
  expect((await announced()).toSorted()).toEqual(stranded.toSorted());
});

test('what a resume that is under way will release is left to it', async () => {
  const [held] = await overdue({});
  await move('hold', [held as string]);
  await product.parts.pool.query('update endpoint set updated_at = now() where endpoint_id = $1', [
    destination.endpointId,
  ]);
  expect(await reconcilerWith({ graceMs: 30_000 }).reconcile()).toMatchObject({ released: 0 });
  expect(await statesOf([held as string])).toEqual(['held']);
});

test('a delivery whose endpoint was deleted during its call ends, instead of being held for ever', async () => {
  const [deliveryId = ''] = await overdue({});
  const { pool } = product.parts;
  const verdict = await claimOne(pool, deliveryId, { leaseMs: 60_000, timeoutMs: 2_000 });
  expect(verdict?.verdict).toBe('claimed');
  await product.endpoints.remove(destination.name, { actor: 'test' });
  await settleAttempts(
    pool,
    [settlementOf(deliveryId, { decision: 'retry', outcome: 'retryable', endpointFailed: true, delayMs: 0 })],
    { holder: 'test', timeoutMs: 2_000 },
  );
  expect(await statesOf([deliveryId])).toEqual(['held']);

  expect(await reconcilerWith().reconcile()).toMatchObject({ abandoned: 1 });
  const outcome = await outcomeOf(product, deliveryId);
  expect(outcome).toMatchObject({
    state: 'dead_lettered',
    deadReason: 'endpoint_gone',
    auditRecords: [{ state: 'dead_lettered', attempts: 1 }],
  });
});

test('with the broker away, missed deadlines are dead-lettered and what is stranded is released', async () => {
  const [missed = '', stranded = ''] = await overdue({}, {});
  await setDeadline(missed, 1_000);
  await move('hold', [stranded]);
  const proxy = await startProxy(targetOf(product.config.broker));
  const publisher = await connectPublisher(
    throughPort(product.config.broker, proxy.port),
    product.recorded.log,
  );
  proxy.refuse(true);
  proxy.cut();
  await until('no connection', () => !publisher.isReady());

  const report = await reconcilerWith({ publisher }).reconcile();
  await publisher.close();
  await proxy.close();
  expect(report).toMatchObject({ missed: 1, released: 1, announced: 0, failure: undefined });
  expect(await statesOf([missed, stranded])).toEqual(['dead_lettered: deadline_passed', 'due']);
});

test('a broker that refuses a wake-up keeps no deadline from being recorded, and is reported', async () => {
  // On the first page there is nothing but what cannot be announced; what has missed its deadline comes on the second.
  await overdue(...Array.from({ length: 1_000 }, () => ({})));
  const [missed = ''] = await overdue({ deliverAt: inMs(-30_000) });
  await setDeadline(missed, 1_000);
  const refusal = new PublishError('nacked', 'the broker refused it');
  const announceNow = (): Promise<void> => Promise.reject(refusal);

  const report = await reconcilerWith({
    announcer: { ...product.parts.announcer, announceNow },
  }).reconcile();
  expect(report).toMatchObject({ missed: 1, announced: 0, failure: refusal });
  expect(await statesOf([missed])).toEqual(['dead_lettered: deadline_passed']);
});

test('with enough waiting for the workers, only what is near its deadline is announced again', async () => {
  const [near = '', far = '', strandedNear = ''] = await overdue({}, {}, {}, {});
  await setDeadline(near, 30 * 60_000);
  await setDeadline(far, 2 * 3_600_000);
  await setDeadline(strandedNear, 30 * 60_000);
  await move('hold', [strandedNear]);
  const backlog = Array.from({ length: 1_000 }, (_, i) => ({ delivery_id: `waiting-${i}` }));
  await Promise.all(backlog.map((wakeUp) => forge(product, wakeUp)));
  const deliveriesQueue = namesOf(product.config.broker.prefix).deliveries;
  await until(
    'the backlog',
    async () => (await product.parts.publisher.countReady(deliveriesQueue)) === 1_000,
  );

  expect(await reconcilerWith().reconcile()).toMatchObject({ announced: 1, released: 1 });
  const beyond = (await announced()).filter((id) => !id.startsWith('waiting-'));
  expect(beyond.toSorted()).toEqual([near, strandedNear].toSorted());
});
