import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker'], env: QUICK });
});

afterAll(() => product.close());

test('a policy that changes during a call decides what follows from it', async () => {
  const { receiver, endpointId, name } = await openDestination(product, {
    answers: [503],
    delayMs: 500,
    policy: { kind: 'schedule', retry_schedule: [0, 3600], max_attempts: 8 },
  });
  const { deliveryId } = await publishTo(product, { name });
  await until('the call', async () => {
    const found = await product.parts.pool.query('select state from delivery where delivery_id = $1', [
      deliveryId,
    ]);
    return found.rows[0]?.state === 'in_flight';
  });

  await product.endpoints.patch(endpointId, { retry_schedule: [0], max_attempts: 1 }, { actor: 'test' });

  const outcome = await reaches(product, deliveryId, 'dead_lettered');
  expect(outcome.attempts.map((a) => [a.attempt, a.outcome])).toEqual([[1, 'retryable']]);
  await receiver.close();
});
