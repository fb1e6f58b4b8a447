import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Destination,
  forge,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  reaches,
  wakeUpsAreThrough,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  // On a busy machine a short claim would lapse, and be made again: that is another promise's test.
  const patient = { DUEPOST_EGRESS_TIMEOUT_MS: '20000', DUEPOST_CLAIM_LEASE_MS: '40000' };
  product = await openTestProduct({ roles: ['worker'], env: { ...QUICK, ...patient } });
  await Promise.all([product.start(['worker']), product.start(['worker'])]);
  destination = await openDestination(product, { delayMs: 100 });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('gives the delivery to one of many workers, however often it is announced', async () => {
  const { deliveryId } = await publishTo(product, destination);
  const wakeUp = { v: 1, delivery_id: deliveryId, contract_ref: null, attempt: 1 };
  await Promise.all(Array.from({ length: 50 }, () => forge(product, wakeUp)));
  await reaches(product, deliveryId, 'delivered');
  await Promise.all(Array.from({ length: 50 }, () => forge(product, { ...wakeUp, attempt: 2 })));
  await wakeUpsAreThrough(product, destination);

  const outcome = await outcomeOf(product, deliveryId);
  expect(outcome.attempts.map((a) => a.outcome)).toEqual(['delivered']);
  expect(outcome.auditRecords).toHaveLength(1);
  const calls = destination.receiver.calls().filter((call) => call.deliveryId === deliveryId);
  expect(calls.map((call) => [call.attempt, call.kind])).toEqual([[1, 'first']]);
});

test('spreads a thousand wake-ups of a hundred deliveries over workers with one call each', async () => {
  const deliveryIds = await Promise.all(
    Array.from({ length: 100 }, async () => (await publishTo(product, destination)).deliveryId),
  );
  await Promise.all(
    Array.from({ length: 10 }, () => deliveryIds)
      .flat()
      .map((id) => forge(product, { v: 1, delivery_id: id, contract_ref: null, attempt: 1 })),
  );
  for (const deliveryId of deliveryIds) await reaches(product, deliveryId, 'delivered');
  await wakeUpsAreThrough(product, destination);

  const effects = destination.receiver.effects().filter((e) => deliveryIds.includes(e.deliveryId ?? ''));
  expect(effects.map((effect) => effect.calls)).toEqual(deliveryIds.map(() => 1));
});
