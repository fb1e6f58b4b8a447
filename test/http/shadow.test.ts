import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi();
});

afterAll(() => api.close());

test('a shadow report says what is due, when the calendar says so, and why it has not passed', async () => {
  await api.call('POST', '/v1/endpoints', {
    body: { name: 'watched', url: 'https://watched.example/notices', mode: 'shadow' },
  });
  const { body: reminder } = await api.call('POST', '/v1/reminders', {
    body: {
      idempotency_key: 'pol-1-2037',
      contract_ref: 'pol-1',
      endpoint: 'watched',
      renewal_date: '2037-01-23',
      notice_period: 'P30D',
      jurisdiction: 'PL',
    },
  });
  const { status, body } = await api.call('GET', '/v1/shadow/report?from=2036-12-24&to=2036-12-31T00:00:00Z');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    from: '2036-12-24T00:00:00.000Z',
    to: '2036-12-31T00:00:00.000Z',
    passed: false,
    reasons: [
      'the period ends in the future, at 2036-12-31T00:00:00.000Z',
      'nothing was due on 2036-12-30: without the old list these days show nothing',
    ],
    compared_with: ['calendar'],
    summary: { rows: 1, matched: 1, different_time: 0 },
    endpoints: [{ name: 'watched' }],
  });
  expect(body.rows).toMatchObject([
    {
      delivery_id: reminder.delivery_id,
      due_at: '2036-12-29T08:00:00.000Z',
      recomputed_due_at: '2036-12-29T08:00:00.000Z',
      findings: [],
    },
  ]);
});

test.each([
  ['from=2036-12-24', 'to'],
  ['from=soon&to=2036-12-31', 'from'],
  ['from=2036-12-24&to=2036-13-31', 'to'],
  ['from=2036-12-24&to=2036-12-23', 'to'],
])('a period that is none is refused: %s', async (query, member) => {
  const { status, body } = await api.call('GET', `/v1/shadow/report?${query}`);
  expect([status, body.code, body.errors[0].path]).toEqual([400, 'invalid_request', `/${member}`]);
});

test('an endpoint that is not there is told', async () => {
  const { status } = await api.call('GET', '/v1/shadow/report?from=2036-12-24&to=2036-12-31&endpoint=none');
  expect(status).toBe(404);
});
