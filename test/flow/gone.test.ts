import { afterAll, beforeAll, expect, test } from 'vitest';
import { findEndpoint } from '../../src/store/endpoints.ts';
import { inMs, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { dueNow } from '../support/reminders.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  await product.start(['worker']);
});

afterAll(() => product.close());

test('410 disables the endpoint once, ends what was answered, holds the rest and takes nothing more', async () => {
  const destination = await openDestination(product, { answers: [410], delayMs: 200 });
  const waiting = await publishTo(product, destination, { deliverAt: inMs(3_600_000) });
  const answered = await Promise.all([1, 2, 3, 4].map(() => publishTo(product, destination)));

  for (const { deliveryId } of answered) {
    const outcome = await reaches(product, deliveryId, 'dead_lettered');
    expect(outcome.deadReason).toBe('endpoint_gone');
  }
  await reaches(product, waiting.deliveryId, 'held');
  expect(await findEndpoint(product.parts.pool, destination.name)).toMatchObject({
    status: 'disabled',
    statusReason: 'gone',
  });
  const { rows } = await product.parts.pool.query('select event from operation where subject_id = $1', [
    destination.endpointId,
  ]);
  expect(rows.filter((row) => row.event === 'endpoint.disabled')).toHaveLength(1);

  const later = await publishTo(product, destination);
  expect(later.deliveries).toEqual([{ endpoint_id: destination.endpointId, state: 'skipped' }]);
  await expect(product.reminders.schedule(dueNow({ endpoint: destination.name }))).rejects.toMatchObject({
    code: 'endpoint_disabled',
  });
  await destination.receiver.close();
});
