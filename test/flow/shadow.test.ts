import { afterAll, beforeAll, expect, test } from 'vitest';
import { attemptView, auditView } from '../../src/pipeline/views.ts';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { listAuditRecords } from '../../src/store/evidence/audit.ts';
import { findDelivery } from '../../src/store/find-delivery.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { dueNow } from '../support/reminders.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let receiver: PracticeReceiver;

beforeAll(async () => {
  receiver = await startPracticeReceiver({ answers: [200] });
  product = await openTestProduct({ roles: ['worker', 'reconciler'] });
  for (const [name, mode] of [
    ['watched', 'shadow'],
    ['in-use', 'live'],
  ] as const) {
    await product.endpoints.create({ name, url: receiver.url, mode }, { actor: 'test' });
  }
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

async function recordOf(deliveryId: string): Promise<Record<string, unknown>> {
  return until('the audit record', async () => {
    const found = await product.parts.pool.query(
      `select a.state, a.shadow, a.attempts, t.shadow as attempt_shadow, t.status, e.detail::json as detail
         from audit_record a
         join attempt t on t.delivery_id = a.delivery_id
         join trail e on e.delivery_id = a.delivery_id and e.event = 'deliver'
        where a.delivery_id = $1`,
      [deliveryId],
    );
    return found.rows[0];
  });
}

test('in shadow mode everything happens but the call, and the evidence says so', async () => {
  const { reminder } = await product.reminders.schedule(dueNow({ endpoint: 'watched' }));
  const record = await recordOf(reminder.deliveryId);
  expect(record).toMatchObject({ state: 'delivered', shadow: true, attempt_shadow: true, attempts: 1 });
  expect(record['detail']).toMatchObject({
    sent: false,
    url: receiver.url,
    request_headers: {
      'Idempotency-Key': reminder.idempotencyKey,
      'webhook-signature': expect.stringMatching(/^v1,/),
    },
    decision: { state: 'delivered' },
  });
  const [audited] = await listAuditRecords(
    product.parts.pool,
    { contractRef: reminder.contractRef },
    { after: undefined, limit: 1 },
  );
  expect(audited && auditView(audited)).toMatchObject({ state: 'delivered', shadow: true });
  const found = await findDelivery(product.parts.pool, reminder.deliveryId);
  expect(found?.attempts.map(attemptView)).toMatchObject([{ outcome: 'delivered', shadow: true }]);
  const { decision } = record['detail'] as { decision: { shadow: { attempts_after_ms: number[] } } };
  expect(decision.shadow.attempts_after_ms).toHaveLength(12);
  const live = await product.reminders.schedule(dueNow({ endpoint: 'in-use' }));
  expect(await recordOf(live.reminder.deliveryId)).toMatchObject({ shadow: false, attempt_shadow: false });
  expect(receiver.calls().map((c) => c.deliveryId)).toEqual([live.reminder.deliveryId]);
});
