import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Destination, inMs, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  // Slow enough that every wake-up is there before the first call ends.
  destination = await openDestination(product, { delayMs: 150 });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('what a paused endpoint missed comes in due order once it is resumed', async () => {
  await product.endpoints.patch(destination.name, { max_in_flight: 1 }, { actor: 'test' });
  const before = await publishTo(product, destination, { deliverAt: inMs(400) });
  await product.endpoints.pause(destination.name, { actor: 'test', reason: 'maintenance' });
  const overdue = [3, 1, 2].map((hours) => new Date(Date.now() - hours * 3_600_000));
  const during = [];
  for (const deliverAt of overdue) during.push(await publishTo(product, destination, { deliverAt }));
  expect(during.map((event) => event.deliveries[0]?.state)).toEqual(['held', 'held', 'held']);
  await reaches(product, before.deliveryId, 'held');
  expect(destination.receiver.calls()).toEqual([]);

  await product.endpoints.resume(destination.name, { actor: 'test' });
  const [three, one, two] = during.map((event) => event.deliveryId);
  for (const id of [three, two, one, before.deliveryId]) await reaches(product, id as string, 'delivered');
  expect(destination.receiver.calls().map((call) => call.deliveryId)).toEqual([
    three,
    two,
    one,
    before.deliveryId,
  ]);
});
