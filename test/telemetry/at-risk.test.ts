import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRiskWatch, type RiskWatch } from '../../src/pipeline/reconcile/at-risk.ts';
import { listAtRisk } from '../../src/store/watch/at-risk.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let watch: RiskWatch;
let dueId: string;
let laterId: string;
const reasons: string[] = [];

beforeAll(async () => {
  product = await openTestProduct();
  watch = createRiskWatch({
    pool: product.parts.pool,
    log: product.recorded.log,
    graceMs: 15_000,
    timeoutMs: 10_000,
    horizonMs: 900_000,
    signal: new AbortController().signal,
    onFlagged: (reason) => reasons.push(reason),
  });
  const { endpoint } = await product.endpoints.create(
    { name: 'customer-notices', url: 'http://127.0.0.1:8081/' },
    { actor: 'test' },
  );
  const send = async (key: string, inMs: number): Promise<string> => {
    const event = await product.events.publish({
      idempotencyKey: key,
      type: 'order.created',
      payload: {},
      endpoint: endpoint.name,
      contractRef: 'pol-7781',
      deliverAt: new Date(Date.now() + inMs),
      deadlineAt: new Date(Date.now() + 7_200_000),
      actor: 'test',
    });
    return event.deliveries[0]?.delivery_id ?? '';
  };
  dueId = await send('due', 0);
  laterId = await send('later', 3_600_000);
});

afterAll(() => product.close());

async function setFailures(count: number): Promise<void> {
  await product.parts.pool.query('update endpoint set consecutive_failures = $1', [count]);
}

test('nothing is flagged while the endpoint answers', async () => {
  expect(await watch.watch()).toMatchObject({ flagged: 0 });
});

test('what is due soon at a failing endpoint is flagged once, told, and written into its trail', async () => {
  await setFailures(5);
  expect([await watch.watch(), await watch.watch()]).toMatchObject([{ flagged: 1 }, { flagged: 0 }]);

  const atRisk = await listAtRisk(product.parts.pool, 10);
  expect(atRisk).toMatchObject([
    { deliveryId: dueId, contractRef: 'pol-7781', endpointName: 'customer-notices', state: 'due' },
  ]);
  expect(atRisk.map((d) => d.deliveryId)).not.toContain(laterId);
  expect(reasons).toEqual(['endpoint_failing']);
  expect(product.recorded.lines.find((line) => line.event === 'delivery_at_risk')?.fields).toMatchObject({
    delivery_id: dueId,
    contract_ref: 'pol-7781',
    reason: 'endpoint_failing',
  });
  const notices = await product.parts.pool.query("select body from notice where name = 'delivery.at_risk'");
  expect(notices.rows).toEqual([{ body: { delivery_id: dueId, contract_ref: 'pol-7781' } }]);
});

test('the chain of hashes holds with the entry, and the row has its head', async () => {
  const chain = await product.parts.pool.query(
    `select t.entry, t.event, t.detail,
            t.sha256 = trail_hash(coalesce(lag(t.sha256) over (order by t.entry), ''), t.entry, t.at, t.event, t.actor, t.detail) as holds,
            t.sha256 = d.trail_sha256 as is_head
       from trail t
       join delivery d on d.delivery_id = t.delivery_id
      where t.delivery_id = $1
      order by t.entry`,
    [dueId],
  );
  expect(chain.rows).toMatchObject([
    { entry: 1, event: 'schedule', holds: true, is_head: false },
    { entry: 2, event: 'at_risk', holds: true, is_head: true },
  ]);
  expect(JSON.parse(chain.rows[1].detail)).toMatchObject({
    reason: 'endpoint_failing',
    endpoint_failures: 5,
  });
});
