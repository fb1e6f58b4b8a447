import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let receiver: PracticeReceiver;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'] });
  receiver = await startPracticeReceiver({ answers: [503, 503, 200] });
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

test('delivers after two failures with one effect, one key, the same bytes and one audit record', async () => {
  const { endpoint, secret } = await product.endpoints.create(
    {
      name: 'customer-notices',
      url: receiver.url,
      policy: { kind: 'schedule', retry_schedule: [0, 1, 1], max_attempts: 5 },
    },
    { actor: 'test' },
  );
  receiver.setSecrets([secret]);
  const event = await product.events.publish({
    idempotencyKey: 'ord_10241-created',
    type: 'order.created',
    payload: { total: 12 },
    endpoint: endpoint.name,
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: 'test',
  });
  const deliveryId = event.deliveries[0]?.delivery_id;

  const record = await until('the audit record', async () => {
    const found = await product.parts.pool.query('select * from audit_record where delivery_id = $1', [
      deliveryId,
    ]);
    return found.rows[0];
  });

  expect(receiver.calls().map((c) => [c.attempt, c.answered, c.verified])).toEqual([
    [1, 503, true],
    [2, 503, true],
    [3, 200, true],
  ]);
  expect(new Set(receiver.calls().map((c) => `${c.key} ${c.deliveryId} ${c.bodySha256}`))).toEqual(
    new Set([`ord_10241-created:${endpoint.endpointId} ${deliveryId} ${record.body_sha256.toString('hex')}`]),
  );
  expect(receiver.effects()).toHaveLength(1);
  expect(record).toMatchObject({ state: 'delivered', attempts: 3, cycle: 1, in_time: true });
});
