import { afterAll, beforeAll, expect, test } from 'vitest';
import { moveDeliveries } from '../../src/store/moves.ts';
import { type Destination, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('every attempt and every replay carries the same key, id and bytes, and numbers go on', async () => {
  destination = await openDestination(product, {
    answers: [503, 500, 503, 200],
    policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 2 },
  });
  const { deliveryId } = await publishTo(product, destination, {
    idempotencyKey: 'ord_10241-created',
    payload: { total: '12.50', umlaut: 'Prämie', deep: [{ a: 1 }, null] },
  });
  const first = await reaches(product, deliveryId, 'dead_lettered');
  expect(first.deadReason).toBe('attempts_exhausted');
  await moveDeliveries(product.parts.pool, {
    move: 'replay',
    deliveryIds: [deliveryId],
    actor: 'test',
    trail: '{}',
    timeoutMs: product.config.egress.timeoutMs,
  });
  const outcome = await reaches(product, deliveryId, 'delivered');

  const calls = destination.receiver.calls();
  expect(calls.map((call) => [call.attempt, call.answered, call.verified])).toEqual([
    [1, 503, true],
    [2, 500, true],
    [3, 503, true],
    [4, 200, true],
  ]);
  expect(new Set(calls.map((call) => `${call.key} ${call.deliveryId} ${call.bodySha256}`))).toEqual(
    new Set([
      `ord_10241-created:${destination.endpointId} ${deliveryId} ${outcome.auditRecords[0]?.bodySha256.toString('hex')}`,
    ]),
  );
  expect(outcome.auditRecords.map(({ cycle, state, attempts }) => ({ cycle, state, attempts }))).toEqual([
    { cycle: 1, state: 'dead_lettered', attempts: 2 },
    { cycle: 2, state: 'delivered', attempts: 2 },
  ]);
  expect(destination.receiver.effects()).toHaveLength(1);
  await until('the endpoint to be well again', async () => {
    const { rows } = await product.parts.pool.query('select consecutive_failures as n from endpoint');
    return rows[0].n === 0;
  });
});
