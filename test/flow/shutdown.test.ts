import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Destination,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  reaches,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('SIGTERM waits for a call that is under way', async () => {
  destination = await openDestination(product, { delayMs: 300 });
  const worker = await startProcess(product, 'worker');
  const { deliveryId } = await publishTo(product, destination);
  await reaches(product, deliveryId, 'in_flight');
  process.kill(worker.pid, 'SIGTERM');
  expect(await worker.ended).toEqual({ code: 0, signal: undefined });
  expect(await outcomeOf(product, deliveryId)).toMatchObject({
    state: 'delivered',
    attempts: [{ outcome: 'delivered' }],
  });
  await destination.receiver.close();
});

test('what takes longer than the grace is handed back, and is another worker’s at once', async () => {
  destination = await openDestination(product, { answers: ['hang', 200] });
  const worker = await startProcess(product, 'worker', {
    DUEPOST_EGRESS_TIMEOUT_MS: '60000',
    DUEPOST_CLAIM_LEASE_MS: '62000',
    DUEPOST_SHUTDOWN_MS: '2500',
  });
  const { deliveryId } = await publishTo(product, destination);
  await until('the call', () => destination.receiver.calls().length > 0);
  process.kill(worker.pid, 'SIGTERM');
  expect(await worker.ended).toEqual({ code: 0, signal: undefined });
  const handedBack = await outcomeOf(product, deliveryId);
  expect(handedBack).toMatchObject({ state: 'due', attempts: [{ outcome: 'unknown', error: 'aborted' }] });

  const stop = await product.start(['worker', 'reconciler']);
  const outcome = await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(outcome.attempts.map((a) => a.outcome)).toEqual(['unknown', 'delivered']);
  expect(destination.receiver.effects()).toHaveLength(1);
});
