import { afterAll, beforeAll, expect, test } from 'vitest';
import { PERSISTENT, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';
import { type ExampleService, installExample } from './example-service.ts';
import { SECRET } from './signed-call.ts';

const DELIVERIES = 400;
const KILLS = 6;

let product: TestProduct;
let example: ExampleService;

beforeAll(async () => {
  [product, example] = await Promise.all([openTestProduct({ env: QUICK }), installExample([SECRET])]);
});

afterAll(async () => {
  await product.close();
  await example.close();
});

async function countNotices(): Promise<number> {
  const { rows } = await example.pool.query<{ count: number }>('select count(*)::int as count from notice');
  return rows[0]?.count ?? 0;
}

test('kill -9 of the receiver, again and again, leaves one effect per key and one audit record each', {
  timeout: 180_000,
}, async () => {
  let service = await example.start();
  const { endpoint } = await product.endpoints.create(
    { name: 'customer-notices', url: service.url, policy: PERSISTENT, secret: SECRET },
    { actor: 'test' },
  );
  const events = await Promise.all(Array.from({ length: DELIVERIES }, () => publishTo(product, endpoint)));
  const deliveryIds = events.map((event) => event.deliveryId).toSorted();
  await product.start(['worker', 'reconciler']);
  for (let kill = 1; kill <= KILLS; kill += 1) {
    // Many calls are under way at any moment, so each kill cuts some at every stage.
    await until(`notices before kill ${kill}`, async () => (await countNotices()) >= kill * 50);
    await service.kill('SIGKILL');
    service = await example.start(service.port);
  }

  const { pool } = product.parts;
  await until(
    'every delivery to end',
    async () =>
      (await pool.query(`select 1 from delivery where state <> 'delivered' limit 1`)).rows.length === 0,
    120_000,
  );
  const { rows: ours } = await pool.query<{ delivery_id: string; key: string; records: number }>(
    `select d.delivery_id, d.idempotency_key as key, count(r.delivery_id)::int as records
       from delivery d left join audit_record r using (delivery_id)
      group by 1, 2 order by 1`,
  );
  expect(ours.map((row) => row.delivery_id)).toEqual(deliveryIds);
  expect(ours.filter((row) => row.records !== 1)).toEqual([]);

  const { rows: theirs } = await example.pool.query<{ key: string; receipts: string[] }>(
    `select key, array_agg('notice-' || notice_id) as receipts from notice group by key`,
  );
  const receiptsOf = new Map(theirs.map((row) => [row.key, row.receipts]));
  expect(theirs.filter((row) => row.receipts.length !== 1)).toEqual([]);
  expect([...receiptsOf.keys()].toSorted()).toEqual(ours.map((row) => row.key).toSorted());

  // The evidence names the very row that the service wrote, also where the first answer died with it.
  const { rows: receipts } = await pool.query<{ key: string; receipt: string }>(
    `select d.idempotency_key as key, t.detail::jsonb #>> '{response_headers,webhook-receipt}' as receipt
       from delivery d join trail t using (delivery_id)
      where t.event = 'deliver'`,
  );
  expect(receipts).toHaveLength(DELIVERIES);
  for (const { key, receipt } of receipts) expect([receipt]).toEqual(receiptsOf.get(key));

  const { rows: cut } = await pool.query(
    `select 1 from attempt where outcome = 'retryable' and status is null`,
  );
  expect(cut.length).toBeGreaterThanOrEqual(KILLS);
});
