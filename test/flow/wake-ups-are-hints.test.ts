import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { resetWatermark } from '../../src/store/due.ts';
import {
  type Destination,
  forge,
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  purgeEverything,
  QUICK,
  reaches,
  wakeUpsAreThrough,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
});

beforeEach(() => destination.receiver.reset());

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('purged queues delay what was due and what is due soon, and lose nothing', async () => {
  const dues = [0, 0, 500, 1_000, 1_500];
  const events = await Promise.all(
    dues.map((ms) => publishTo(product, destination, { deliverAt: inMs(ms) })),
  );
  await product.parts.announcer.drain();
  await purgeEverything(product);
  // As after `topology apply` on an empty broker; without it, the same rows are found overdue.
  await resetWatermark(product.parts.pool);
  const stop = await product.start(['worker', 'reconciler']);
  for (const { deliveryId } of events) await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(destination.receiver.effects().map((effect) => effect.calls)).toEqual(dues.map(() => 1));
});

test('rows behind the watermark are found again when their wake-ups are lost', async () => {
  const { deliveryId } = await publishTo(product, destination);
  await product.parts.announcer.drain();
  await purgeEverything(product);
  const stop = await product.start(['worker', 'reconciler']);
  const outcome = await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(outcome.attempts).toHaveLength(1);
});

test('early, repeated and reordered wake-ups change neither when nor how often', async () => {
  const stop = await product.start(['worker', 'reconciler']);
  const dueAt = inMs(1_500);
  const { deliveryId } = await publishTo(product, destination, { deliverAt: dueAt });
  for (const attempt of [3, 2, 1, 1]) {
    await forge(product, { v: 1, delivery_id: deliveryId, contract_ref: null, attempt });
  }
  const outcome = await reaches(product, deliveryId, 'delivered');
  for (const attempt of [1, 2, 5]) {
    await forge(product, { v: 1, delivery_id: deliveryId, contract_ref: null, attempt });
  }
  await wakeUpsAreThrough(product, destination);
  await stop();
  expect(outcome.attempts[0]?.startedAt?.getTime()).toBeGreaterThanOrEqual(dueAt.getTime());
  expect((await outcomeOf(product, deliveryId)).attempts).toHaveLength(1);
  expect(destination.receiver.calls().filter((call) => call.deliveryId === deliveryId)).toHaveLength(1);
});

test('a wake-up that comes days late is as good as one in time', async () => {
  const { deliveryId } = await publishTo(product, destination, {
    deliverAt: new Date(Date.now() - 3 * 86_400_000),
  });
  await product.parts.announcer.drain();
  await purgeEverything(product);
  await forge(product, { v: 1, delivery_id: deliveryId, contract_ref: null, attempt: 1 });
  const stop = await product.start(['worker']);
  await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(destination.receiver.effects()).toHaveLength(1);
});

test('a forged wake-up sends nothing: unknown delivery, other contract, attempt from the future', async () => {
  const stop = await product.start(['worker']);
  const { deliveryId } = await publishTo(product, destination, { deliverAt: inMs(3_600_000) });
  await forge(product, {
    v: 1,
    delivery_id: 'dlv_01jzzzzzzzz8mzzzzzzzzzzzzz',
    contract_ref: null,
    attempt: 1,
  });
  await forge(product, { v: 1, delivery_id: deliveryId, contract_ref: 'someone-else', attempt: 1 });
  await forge(product, { v: 1, delivery_id: deliveryId, contract_ref: null, attempt: 999_999 });
  await wakeUpsAreThrough(product, destination);
  await stop();
  expect(await outcomeOf(product, deliveryId)).toMatchObject({ state: 'due', attempts: [] });
  expect(destination.receiver.calls().filter((call) => call.deliveryId === deliveryId)).toEqual([]);
});
