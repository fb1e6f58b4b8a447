import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSignatureCheck, publicKeyOf } from '../../src/domain/audit/seal.ts';
import { verifyBundle } from '../../src/domain/audit/verify-bundle.ts';
import { openTestApi, type TestApi } from './client.ts';

const privateKey = generateKeyPairSync('ed25519')
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
let api: TestApi;

beforeAll(async () => {
  api = await openTestApi({ env: { DUEPOST_SEALING_KEY: privateKey } });
  await api.call('POST', '/v1/endpoints', { body: { name: 'one', url: 'http://127.0.0.1:8017/' } });
});

afterAll(() => api.close());

async function publish(more: Record<string, unknown>): Promise<string> {
  const { body } = await api.call('POST', '/v1/events', {
    body: { type: 'a.b', payload: {}, idempotency_key: randomUUID(), endpoint: 'one', ...more },
  });
  return body.deliveries[0].delivery_id;
}

async function listed(query: string): Promise<string[]> {
  const { body } = await api.call('GET', `/v1/audit?${query}`);
  return body.data.map((r: { delivery_id: string }) => r.delivery_id);
}

test('audit records are found by contract and by the day they are about', async () => {
  const deliveryId = await publish({ contract_ref: 'pol-audit', deliver_at: '2031-05-06T23:59:59.999Z' });
  await api.call('POST', `/v1/deliveries/${deliveryId}/cancel`, { body: { reason: 'x' } });
  const today = new Date().toISOString().slice(0, 10);
  expect(await listed('contract_ref=pol-audit')).toEqual([deliveryId]);
  expect(await listed(`contract_ref=pol-audit&date=${today}`)).toEqual([deliveryId]);
  expect(await listed('contract_ref=pol-audit&date=2031-05-06')).toEqual([deliveryId]);
  expect(await listed('date=2031-05-06')).toEqual([deliveryId]);
  expect(await listed('contract_ref=pol-audit&date=2031-05-07')).toEqual([]);
  expect(await listed('date=2031-05-07')).toEqual([]);
  expect(await listed('contract_ref=pol-other')).toEqual([]);
});

test("a reminder's days are those of its own time zone, its renewal date among them", async () => {
  const { body } = await api.call('POST', '/v1/reminders', {
    body: {
      idempotency_key: randomUUID(),
      contract_ref: 'pol-zone',
      endpoint: 'one',
      renewal_date: '2031-03-31',
      notice_period: 'P30D',
      jurisdiction: '24x7',
      time_zone: 'Asia/Tokyo',
    },
  });
  expect(body.due_at).toBe('2031-02-28T15:00:00.000Z');
  await api.call('POST', `/v1/reminders/${body.reminder_id}/cancel`, { body: { reason: 'x' } });
  for (const [date, isFound] of [
    ['2031-03-01', true],
    ['2031-02-28', false],
    ['2031-03-31', true],
  ] as const) {
    expect([date, (await listed(`contract_ref=pol-zone&date=${date}`)).length]).toEqual([
      date,
      isFound ? 1 : 0,
    ]);
  }
});

test('audit records page by delivery and cycle', async () => {
  const deliveryId = await publish({
    contract_ref: 'pol-cycles',
    deliver_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const path = `/v1/deliveries/${deliveryId}`;
  await api.call('POST', `${path}/cancel`);
  await api.call('POST', `${path}/retry`);
  await api.call('POST', `${path}/cancel`);
  const first = await api.call('GET', '/v1/audit?contract_ref=pol-cycles&limit=1');
  const second = await api.call(
    'GET',
    `/v1/audit?contract_ref=pol-cycles&limit=1&cursor=${first.body.next_cursor}`,
  );
  expect([first.body.data[0].cycle, second.body.data[0].cycle]).toEqual([2, 1]);
  expect([first.body.has_more, second.body.has_more]).toEqual([true, false]);
});

test('the evidence of a delivery is a file that is sound by the public key alone', async () => {
  const deliveryId = await publish({ contract_ref: 'pol-evidence' });
  await api.call('POST', `/v1/deliveries/${deliveryId}/cancel`, { body: { reason: 'x' } });
  const { status, body, text, headers } = await api.call('GET', `/v1/audit/${deliveryId}/evidence`);
  expect(status).toBe(200);
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${deliveryId}.json"`);
  expect(body.deliveries[0].delivery.delivery_id).toBe(deliveryId);
  expect(body.exported_by).toMatch(/^key:admin \(key_/);
  const report = verifyBundle(Buffer.from(text), createSignatureCheck([publicKeyOf(privateKey)]));
  expect(report.findings).toEqual([]);
  expect(report.ok).toBe(true);
  expect((await api.call('GET', '/v1/audit/dlv_nothing/evidence')).status).toBe(404);
});
