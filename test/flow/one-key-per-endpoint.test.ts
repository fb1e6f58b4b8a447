import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Destination, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destinations: Destination[];

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  destinations = [await openDestination(product), await openDestination(product)];
});

afterAll(async () => {
  await Promise.all(destinations.map(({ receiver }) => receiver.close()));
  await product.close();
});

test('the endpoints of one event get the same bytes under keys and ids of their own', async () => {
  const event = await publishTo(product, { name: '' }, { idempotencyKey: 'ord_1', endpoint: undefined });
  expect(event.deliveries).toHaveLength(2);
  for (const { delivery_id } of event.deliveries) await reaches(product, delivery_id as string, 'delivered');
  const calls = destinations.map(({ receiver }) => receiver.calls()[0]);
  expect(calls.map((call) => call?.key)).toEqual(destinations.map(({ endpointId }) => `ord_1:${endpointId}`));
  expect(new Set(calls.map((call) => call?.deliveryId))).toEqual(
    new Set(event.deliveries.map(({ delivery_id }) => delivery_id)),
  );
  expect(calls[0]?.bodySha256).toBe(calls[1]?.bodySha256);
});
