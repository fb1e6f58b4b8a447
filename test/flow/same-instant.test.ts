import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Destination, inMs, openDestination, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const DELIVERIES = 1_100;
let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  // So near a horizon that the feeder, and not the writer, announces; so long a grace that nobody else does.
  product = await openTestProduct({
    env: {
      DUEPOST_FEEDER_INTERVAL_MS: '200',
      DUEPOST_HORIZON_MS: '1000',
      DUEPOST_RECONCILER_GRACE_MS: '60000',
    },
  });
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('more rows than a page, due within one millisecond, are each fed once and sent once, none early', async () => {
  const deliverAt = inMs(4_000);
  await Promise.all(Array.from({ length: DELIVERIES }, () => publishTo(product, destination, { deliverAt })));
  // Parts of a millisecond, which a Date cannot hold.
  await product.parts.pool.query(
    `update delivery set due_at = due_at + (random() * 900)::int * interval '1 microsecond'`,
  );
  await product.parts.pool.query('update delivery set scheduled_at = due_at');
  const stop = await product.start(['worker', 'reconciler']);
  await until('all to be delivered', async () => {
    const { rows } = await product.parts.pool.query(
      `select count(*)::int as n from delivery where state = 'delivered'`,
    );
    return rows[0].n === DELIVERIES;
  });
  await stop();
  const { rows } = await product.parts.pool.query(
    `select count(*)::int as attempts, count(*) filter (where a.started_at < d.scheduled_at)::int as early
       from attempt a join delivery d using (delivery_id)`,
  );
  expect(rows[0]).toEqual({ attempts: DELIVERIES, early: 0 });
  expect(destination.receiver.effects()).toHaveLength(DELIVERIES);
  expect(destination.receiver.calls()).toHaveLength(DELIVERIES);
});
