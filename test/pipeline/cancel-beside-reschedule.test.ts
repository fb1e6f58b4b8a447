import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { createDeliveryOperator } from '../../src/pipeline/operate/deliveries.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { type Destination, inMs, openDestination, outcomeOf, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct();
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('a cancellation that meets a reschedule is carried out after it', async () => {
  const { pool } = product.parts;
  const operator = createDeliveryOperator({
    ...product.parts,
    deliveriesQueue: namesOf(product.config.broker.prefix).deliveries,
    timeoutMs: product.config.egress.timeoutMs,
  });
  const { deliveryId } = await publishTo(product, destination, { deliverAt: inMs(3_600_000) });
  let cancelling: Promise<void> | undefined;
  await inTransaction(pool, async (db) => {
    await db.query({
      text: 'update delivery set revision = revision + 1 where delivery_id = $1',
      values: [deliveryId],
    });
    cancelling = operator.cancel(deliveryId, { actor: 'test', reason: 'ordered by mistake' });
    await until('the cancellation to wait', async () => {
      const { rowCount } = await pool.query(
        'select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0',
      );
      return rowCount === 1;
    });
  });
  await cancelling;
  expect((await outcomeOf(product, deliveryId)).state).toBe('cancelled');
});
