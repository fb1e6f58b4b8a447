import { afterAll, beforeAll, expect, test } from 'vitest';
import { settleAttempts } from '../../src/store/settle.ts';
import { claimOne, settlementOf } from '../support/attempts.ts';
import { openDestination, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

test('a result that is written again, because the first answer was lost, says what is to follow and changes nothing', async () => {
  const { receiver, name } = await openDestination(product);
  const { deliveryId } = await publishTo(product, { name }, { contractRef: 'pol-1' });
  await claimOne(product.parts.pool, deliveryId);
  const result = settlementOf(deliveryId, {
    decision: 'retry',
    outcome: 'retryable',
    endpointFailed: true,
    delayMs: 60_000,
  });
  const by = { holder: 'test', timeoutMs: 10_000 };
  await settleAttempts(product.parts.pool, [result], by);

  const [again] = await settleAttempts(product.parts.pool, [result], by);

  expect(again).toMatchObject({ effect: 'repeat', state: 'due', latestAttempt: 1, contractRef: 'pol-1' });
  expect(again?.remainingMs).toBeGreaterThan(50_000);
  const { rows } = await product.parts.pool.query(
    `select (select count(*)::int from trail where delivery_id = $1) as entries,
            (select consecutive_failures from endpoint where name = $2) as failures`,
    [deliveryId, name],
  );
  expect(rows[0]).toEqual({ entries: 2, failures: 1 });
  await receiver.close();
});
