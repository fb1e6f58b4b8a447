import { afterAll, beforeAll, expect, test } from 'vitest';
import { daysFromToday } from '../support/reminders.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;
let keys = 0;

beforeAll(async () => {
  api = await openTestApi();
  await api.call('POST', '/v1/endpoints', { body: { name: 'notices', url: 'http://127.0.0.1:8017/' } });
});

afterAll(() => api.close());

function reminder(changes: Record<string, unknown> = {}): Record<string, unknown> {
  keys += 1;
  return {
    idempotency_key: `rem-${keys}`,
    contract_ref: 'pol-7781',
    endpoint: 'notices',
    renewal_date: '2027-03-31',
    notice_period: 'P30D',
    jurisdiction: 'DE-BY',
    payload: { premium: 12.5 },
    ...changes,
  };
}

test('a reminder is scheduled for the next business hour after its notice period, and shown again', async () => {
  const { status, body } = await api.call('POST', '/v1/reminders', { body: reminder() });
  expect(status).toBe(202);
  expect(body).toMatchObject({
    contract_ref: 'pol-7781',
    renewal_date: '2027-03-31',
    notice_period: 'P30D',
    jurisdiction: 'DE-BY',
    time_zone: 'Europe/Berlin',
    due_at: '2027-03-01T08:00:00.000Z',
    deadline_at: '2027-03-30T22:00:00.000Z',
    late_start: false,
    state: 'due',
    duplicate: false,
  });
  expect(body.reminder_id).toMatch(/^rem_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(body.due_proof.steps.length).toBeGreaterThan(2);
  const shown = await api.call('GET', `/v1/reminders/${body.reminder_id}`);
  expect(shown.body).toEqual(body);
});

test('the same again is the same reminder, under the header bare or quoted too', async () => {
  const { idempotency_key, ...rest } = reminder({ contract_ref: 'pol-again' });
  const first = await api.call('POST', '/v1/reminders', { body: { idempotency_key, ...rest } });
  for (const header of [String(idempotency_key), `"${String(idempotency_key)}"`]) {
    const again = await api.call('POST', '/v1/reminders', {
      body: Object.fromEntries(Object.entries(rest).reverse()),
      headers: { 'idempotency-key': header },
    });
    expect(again.status).toBe(202);
    expect(again.body).toEqual({ ...first.body, duplicate: true });
  }
  const other = await api.call('POST', '/v1/reminders', {
    body: { ...rest, idempotency_key, notice_period: 'P31D' },
  });
  expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
});

test('a key is needed', async () => {
  const { idempotency_key: _, ...rest } = reminder();
  const { status, body } = await api.call('POST', '/v1/reminders', { body: rest });
  expect([status, body.code]).toEqual([400, 'idempotency_key_missing']);
  const broken = await api.call('POST', '/v1/reminders', {
    body: rest,
    headers: { 'idempotency-key': 'not a key' },
  });
  expect([broken.status, broken.body.errors[0].path]).toEqual([400, '/idempotency_key']);
});

test.each([
  [{ jurisdiction: 'DE-XX' }, 422, 'unknown_jurisdiction', '/jurisdiction'],
  [{ jurisdiction: 'US' }, 422, 'time_zone_required', '/time_zone'],
  [{ deadline: 'P60D' }, 422, 'window_closed', '/renewal_date'],
  [{ endpoint: 'nobody' }, 404, 'not_found', '/endpoint'],
  [{ renewal_date: '2027-02-30' }, 400, 'invalid_request', '/renewal_date'],
  [{ notice_period: '30 days' }, 400, 'invalid_request', '/notice_period'],
  [{ deadline: 'P1D', deadline_at: '2027-03-30T00:00:00Z' }, 400, 'invalid_request', '/deadline_at'],
  [{ v: 1 }, 400, 'invalid_request', '/v'],
])('is refused with the member at fault: %j', async (changes, status, code, path) => {
  const answer = await api.call('POST', '/v1/reminders', { body: reminder(changes) });
  expect([answer.status, answer.body.code]).toEqual([status, code]);
  expect(answer.body.errors[0].path).toBe(path);
});

test('a reminder that has not been sent moves with its body, and is cancelled once', async () => {
  const { body } = await api.call('POST', '/v1/reminders', { body: reminder({ contract_ref: 'pol-move' }) });
  const path = `/v1/reminders/${body.reminder_id}`;
  const moved = await api.call('PATCH', path, { body: { renewal_date: '2027-06-30' } });
  expect(moved.status).toBe(200);
  expect(moved.body).toMatchObject({
    applied: 'full',
    reminder_id: body.reminder_id,
    renewal_date: '2027-06-30',
    due_at: '2027-05-31T07:00:00.000Z',
    revision: 2,
  });
  expect((await api.call('PATCH', path, { body: {} })).status).toBe(400);
  expect((await api.call('PATCH', path, { body: { jurisdiction: 'DE' } })).body.errors[0].path).toBe(
    '/jurisdiction',
  );

  expect((await api.call('POST', `${path}/cancel`, { body: {} })).body.errors[0].path).toBe('/reason');
  const cancelled = await api.call('POST', `${path}/cancel`, { body: { reason: 'the contract ended' } });
  expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
  expect((await api.call('PATCH', path, { body: { renewal_date: '2027-07-31' } })).status).toBe(409);
  const trail = await api.product.parts.pool.query(
    `select event, actor, detail::jsonb ->> 'reason' as reason from trail where delivery_id = $1 order by entry desc limit 1`,
    [body.delivery_id],
  );
  expect(trail.rows[0]).toMatchObject({ event: 'cancel', reason: 'the contract ended' });
  expect(trail.rows[0].actor).toMatch(/^key:admin \(key_/);
});

test('a move and a cancellation may have a key: repeated under it, neither is done again', async () => {
  const { body } = await api.call('POST', '/v1/reminders', { body: reminder({ contract_ref: 'pol-keys' }) });
  const path = `/v1/reminders/${body.reminder_id}`;
  const move = { idempotency_key: 'move-1', renewal_date: '2027-06-30' };
  expect((await api.call('PATCH', path, { body: move })).body.revision).toBe(2);
  await api.call('PATCH', path, { body: { renewal_date: '2027-07-31' } });
  const again = await api.call('PATCH', path, { body: move });
  expect([again.status, again.body.renewal_date]).toEqual([200, '2027-07-31']);
  expect((await api.call('PATCH', path, { body: { idempotency_key: 'move-2' } })).body.errors[0].path).toBe(
    '/renewal_date',
  );

  const cancel = (members: object, headers = {}) =>
    api.call('POST', `${path}/cancel`, { body: { reason: 'sold', ...members }, headers });
  expect((await cancel({ idempotency_key: 'cancel-1' })).body.state).toBe('cancelled');
  await api.call('POST', `/v1/deliveries/${body.delivery_id}/retry`, { body: {} });
  const repeated = await cancel({}, { 'idempotency-key': '"cancel-1"' });
  expect([repeated.status, repeated.body.state]).toEqual([200, 'due']);
  const other = await cancel({ idempotency_key: 'cancel-1', reason: 'another' });
  expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
  expect((await cancel({ idempotency_key: 'cancel-2' })).body.state).toBe('cancelled');
});

test('what is not there is not found', async () => {
  for (const [method, path, body] of [
    ['GET', '/v1/reminders/rem_00000000000000000000000000', undefined],
    ['GET', '/v1/reminders/9007199254740993', undefined],
    ['PATCH', '/v1/reminders/rem_00000000000000000000000000', { renewal_date: '2027-06-30' }],
    ['POST', '/v1/reminders/rem_00000000000000000000000000/cancel', { reason: 'x' }],
  ] as const) {
    const answer = await api.call(method, path, body === undefined ? {} : { body });
    expect([path, answer.status, answer.body.code]).toEqual([path, 404, 'not_found']);
  }
});

test("a contract's reminders are listed alone, newest first", async () => {
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    const body = reminder({ contract_ref: 'pol/listed & more', renewal_date: daysFromToday(60 + n) });
    ids.unshift((await api.call('POST', '/v1/reminders', { body })).body.reminder_id);
  }
  const query = `contract_ref=${encodeURIComponent('pol/listed & more')}`;
  const first = await api.call('GET', `/v1/reminders?${query}&limit=2`);
  expect(first.body.data.map((r: { reminder_id: string }) => r.reminder_id)).toEqual(ids.slice(0, 2));
  expect(first.body.has_more).toBe(true);
  const rest = await api.call('GET', `/v1/reminders?${query}&limit=2&cursor=${first.body.next_cursor}`);
  expect(rest.body.data.map((r: { reminder_id: string }) => r.reminder_id)).toEqual(ids.slice(2));
  expect([rest.body.has_more, rest.body.next_cursor]).toEqual([false, null]);
});
