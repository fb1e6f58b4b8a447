import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Incoming } from '../../src/broker/incoming.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { encodeWakeUp } from '../../src/domain/wakeup.ts';
import { openEgress } from '../../src/egress/open.ts';
import {
  createDeliverer,
  type Deliverer,
  type DelivererOptions,
} from '../../src/pipeline/deliver/deliver.ts';
import { createEndpointCache } from '../../src/pipeline/deliver/endpoint-cache.ts';
import { createSettler } from '../../src/pipeline/deliver/settle.ts';
import { feed } from '../../src/pipeline/reconcile/feed.ts';
import { createSecretBox } from '../../src/pipeline/secrets.ts';
import { recordInsteadOfSending } from '../../src/pipeline/shadow/sink.ts';
import { claimOne } from '../support/attempts.ts';
import { type Destination, inMs, openDestination, outcomeOf, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordAnnouncements } from '../support/reminders.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product, { delayMs: 500 });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

/** A worker's deliverer, without a consumer before it. */
function openDeliverer(changes: Partial<DelivererOptions> = {}): Deliverer & { close(): Promise<void> } {
  const { pool, announcer, publisher } = product.parts;
  const { log } = product.recorded;
  const { signal } = new AbortController();
  const egress = openEgress(product.config.egress);
  const settler = createSettler({ db: pool, log, holder: 'test', timeoutMs: 2_000, signal });
  const deliverer = createDeliverer({
    db: pool,
    log,
    publisher,
    announcer,
    poison: 'none',
    endpoints: createEndpointCache(pool, createSecretBox(product.config.masterKey)),
    settler,
    holder: 'test',
    send: egress.send,
    sendToSink: recordInsteadOfSending,
    shadowAll: false,
    timeoutMs: 2_000,
    leaseMs: 10_000,
    maxWaiting: 100,
    maxPerEndpoint: 32,
    signal,
    stopping: signal,
    onEndpointDisabled: () => undefined,
    tellDelivered: () => Promise.resolve(),
    ...changes,
  });
  return {
    ...deliverer,
    async close() {
      await egress.close();
      await settler.close();
    },
  };
}

const wakeUp = (deliveryId: string, redelivered = false): Incoming =>
  ({ body: encodeWakeUp({ deliveryId, attempt: 1 }), properties: { headers: {} }, redelivered }) as Incoming;

test('wake-ups in line at an endpoint are all dealt with when it is paused', async () => {
  const deliverer = openDeliverer();
  await product.endpoints.patch(destination.name, { max_in_flight: 1 }, { actor: 'test' });
  const published = await Promise.all(Array.from({ length: 8 }, () => publishTo(product, destination)));
  const handled = Promise.all(published.map(({ deliveryId }) => deliverer.handle(wakeUp(deliveryId))));
  await until('the first call', () => destination.receiver.calls().length === 1);
  await product.endpoints.pause(destination.name, { actor: 'test', reason: 'maintenance' });
  await handled;
  const states = await Promise.all(
    published.map(async ({ deliveryId }) => (await outcomeOf(product, deliveryId)).state),
  );
  expect(new Set(states)).toEqual(new Set(['delivered', 'held']));
  await product.endpoints.resume(destination.name, { actor: 'test' });
  await product.endpoints.patch(destination.name, { max_in_flight: null }, { actor: 'test' });
  await deliverer.close();
});

test('a wake-up that comes again tells that its delivery was delivered, also beside a copy of it', async () => {
  const told: string[] = [];
  const deliverer = openDeliverer({
    tellDelivered: ({ deliveryId }) => Promise.resolve(void told.push(deliveryId)),
  });
  const { deliveryId } = await publishTo(product, destination);
  await deliverer.handle(wakeUp(deliveryId));
  expect(told).toEqual([deliveryId]);
  // As after a death between the settlement and the telling.
  await Promise.all([deliverer.handle(wakeUp(deliveryId)), deliverer.handle(wakeUp(deliveryId, true))]);
  expect(told).toEqual([deliveryId, deliveryId]);
  await deliverer.close();
});

test('what belongs to another URL of the endpoint is not sent to the one that was claimed', async () => {
  const cache = createEndpointCache(product.parts.pool, createSecretBox(product.config.masterKey));
  const url = 'https://moved.example/';
  const deliverer = openDeliverer({
    endpoints: {
      find: async (...of) => ({ ...(await cache.find(...of)), url }),
      refresh: async (...of) => ({ ...(await cache.refresh(...of)), url }),
    },
  });
  const before = destination.receiver.calls().length;
  const { deliveryId } = await publishTo(product, destination);
  await deliverer.handle(wakeUp(deliveryId));
  const { state, attempts } = await outcomeOf(product, deliveryId);
  expect([state, attempts[0]?.error, attempts[0]?.detail]).toEqual([
    'due',
    'not_sent',
    'the endpoint has another URL now',
  ]);
  expect(destination.receiver.calls()).toHaveLength(before);
  await deliverer.close();
});

test('a wake-up that is sent on is not acknowledged before the broker has it', async () => {
  const deliverer = openDeliverer({
    announcer: { ...product.parts.announcer, announceNow: () => Promise.reject(new Error('not confirmed')) },
  });
  const { deliveryId } = await publishTo(product, destination, { deliverAt: inMs(600_000) });
  await expect(deliverer.handle(wakeUp(deliveryId))).rejects.toThrow('not confirmed');
  await deliverer.close();
});

test('claims ahead of their places make no more calls than the endpoint takes at once', async () => {
  const quick = await openDestination(product);
  await product.endpoints.patch(quick.name, { max_in_flight: 4 }, { actor: 'test' });
  const { send, close } = openEgress(product.config.egress);
  let running = 0;
  let most = 0;
  const deliverer = openDeliverer({
    async send(call) {
      running += 1;
      most = Math.max(most, running);
      try {
        return await send(call);
      } finally {
        running -= 1;
      }
    },
  });
  // So many at a time wait in hand, whatever the endpoint's pace.
  for (let round = 0; round < 10; round += 1) {
    const published = await Promise.all(Array.from({ length: 12 }, () => publishTo(product, quick)));
    await Promise.all(published.map(({ deliveryId }) => deliverer.handle(wakeUp(deliveryId))));
  }
  expect(quick.receiver.effects()).toHaveLength(120);
  expect(most).toBe(4);
  await deliverer.close();
  await close();
  await quick.receiver.close();
});

test('a call that could not end before the deadline any more is not made, however that came', async () => {
  const cache = createEndpointCache(product.parts.pool, createSecretBox(product.config.masterKey));
  const deliverer = openDeliverer({
    endpoints: {
      ...cache,
      async find(...of) {
        // The machine stands still between the claim and the call.
        await sleep(1_500);
        return cache.find(...of);
      },
    },
  });
  const { deliveryId } = await publishTo(product, destination);
  await product.parts.pool.query(
    "update delivery set deadline_at = now() + interval '3 seconds' where delivery_id = $1",
    [deliveryId],
  );
  await deliverer.handle(wakeUp(deliveryId));
  expect((await outcomeOf(product, deliveryId)).attempts).toMatchObject([{ attempt: 1, error: 'not_sent' }]);
  await deliverer.close();
});

test('a call that could not have its whole timeout before the claim ends is not made, and no attempt is taken for it', async () => {
  const deliverer = openDeliverer({ leaseMs: 3_000, timeoutMs: 2_000 });
  const { deliveryId } = await publishTo(product, destination);
  await deliverer.handle(wakeUp(deliveryId));
  expect((await outcomeOf(product, deliveryId)).attempts).toMatchObject([
    { attempt: 1, outcome: 'unknown', error: 'not_sent' },
  ]);
  await deliverer.close();
});

test.each([
  ['of an earlier revision', 1],
  ['of the same revision, made otherwise', 0],
])('where the database was restored, the endpoint that is there is called: %s', async (_, back) => {
  const { pool } = product.parts;
  const deliverer = openDeliverer();
  const restored = await openDestination(product);
  const lost = await openDestination(product);
  const by = { actor: 'test' };
  await product.endpoints.patch(restored.name, { url: lost.receiver.url }, by);
  await deliverer.handle(wakeUp((await publishTo(product, restored)).deliveryId));
  expect(lost.receiver.calls()).toHaveLength(1);

  await pool.query('update endpoint set url = $2, revision = revision - $3 where name = $1', [
    restored.name,
    restored.receiver.url,
    back,
  ]);
  const { deliveryId } = await publishTo(product, restored);
  await deliverer.handle(wakeUp(deliveryId));
  expect((await outcomeOf(product, deliveryId)).state).toBe('delivered');
  expect(restored.receiver.calls()).toHaveLength(1);
  await deliverer.close();
  await restored.receiver.close();
  await lost.receiver.close();
});

test('where the database was restored, the endpoint is called as it is set there', async () => {
  const { pool } = product.parts;
  const egress = openEgress(product.config.egress);
  const tenants: (string | undefined)[] = [];
  const deliverer = openDeliverer({
    send: (call) => {
      tenants.push(call.headers['X-Tenant']);
      return egress.send(call);
    },
  });
  const { name, receiver } = await openDestination(product);
  await product.endpoints.patch(name, { headers: { 'X-Tenant': 'lost' } }, { actor: 'test' });
  await deliverer.handle(wakeUp((await publishTo(product, { name })).deliveryId));
  await pool.query(
    `update endpoint set headers = '{"X-Tenant": "restored"}', revision = revision - 1 where name = $1`,
    [name],
  );
  await deliverer.handle(wakeUp((await publishTo(product, { name })).deliveryId));
  expect(tenants).toEqual(['lost', 'restored']);
  await deliverer.close();
  await egress.close();
  await receiver.close();
});

test('a wake-up for what was moved beyond the horizon goes no further, and the feeder brings another when its time is near', async () => {
  const { announcer } = product.parts;
  const { announced, announcer: recorder } = recordAnnouncements();
  const deliverer = openDeliverer({ announcer: { ...recorder, reachMs: announcer.reachMs } });
  const { deliveryId: far } = await publishTo(product, destination, {
    deliverAt: inMs(announcer.reachMs * 2),
  });
  const { deliveryId: near } = await publishTo(product, destination, {
    deliverAt: inMs(announcer.reachMs / 2),
  });
  await deliverer.handle(wakeUp(far));
  await deliverer.handle(wakeUp(near));
  expect(announced.map((a) => a.deliveryId)).toEqual([near]);

  // As it will be when half of that time has passed: the horizon is as far from then.
  const fed = recordAnnouncements();
  await feed({
    ...product.parts,
    announcer: fed.announcer,
    deliveriesQueue: namesOf(product.config.broker.prefix).deliveries,
    horizonMs: announcer.reachMs * 3,
    signal: new AbortController().signal,
  });
  expect(fed.announced.map((a) => a.deliveryId)).toContain(far);
  await deliverer.close();
});

test('a wake-up for what is claimed that long is not given up: nobody else would bring it', async () => {
  const { announcer } = product.parts;
  const { announced, announcer: recorder } = recordAnnouncements();
  const deliverer = openDeliverer({ announcer: { ...recorder, reachMs: announcer.reachMs } });
  const { deliveryId } = await publishTo(product, destination);
  await claimOne(product.parts.pool, deliveryId, {
    leaseMs: announcer.reachMs * 2,
    timeoutMs: 2_000,
    holder: 'another',
  });
  await deliverer.handle(wakeUp(deliveryId));
  expect(announced).toMatchObject([{ deliveryId, attempt: 2 }]);
  await deliverer.close();
});
