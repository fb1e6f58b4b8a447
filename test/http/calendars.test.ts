import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi();
});

afterAll(() => api.close());

test('a due date is explained step by step, as it is scheduled', async () => {
  const asked = {
    renewal_date: '2027-03-31',
    notice_period: 'P30D',
    jurisdiction: 'DE-BY',
    deadline: 'P14D',
  };
  const { status, body } = await api.call('POST', '/v1/calendars/explain', { body: asked });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    due_at: '2027-03-01T08:00:00.000Z',
    deadline_at: '2027-03-16T23:00:00.000Z',
    time_zone: 'Europe/Berlin',
  });
  expect(body.steps.map((s: { rule: string }) => s.rule)).toEqual([
    'renewal_date',
    'notice_period',
    'opening',
    'deadline',
  ]);
  expect(body.proof.inputs).toEqual(asked);
});

test.each([
  [{ jurisdiction: 'XX' }, 422, 'unknown_jurisdiction'],
  [{ jurisdiction: 'US' }, 422, 'time_zone_required'],
  [{ renewal_date: '2027-13-01' }, 400, 'invalid_request'],
  [{ contract_ref: 'pol-1' }, 400, 'invalid_request'],
])('what cannot be computed is refused: %j', async (changes, status, code) => {
  const body = { renewal_date: '2027-03-31', notice_period: 'P30D', jurisdiction: 'DE', ...changes };
  const answer = await api.call('POST', '/v1/calendars/explain', { body });
  expect([answer.status, answer.body.code]).toEqual([status, code]);
});

test('a calendar shows its hours and the holidays of a year', async () => {
  const { status, body } = await api.call('GET', '/v1/calendars/DE-BY?year=2027');
  expect(status).toBe(200);
  expect(body).toMatchObject({ calendar_code: 'DE-BY', time_zone: 'Europe/Berlin', year: 2027 });
  expect(body.holidays.map((h: { date: string }) => h.date)).toContain('2027-01-06');
  expect(Object.values(body.opening_hours)).toEqual([
    ...Array.from({ length: 5 }, () => ['09:00-17:00']),
    [],
    [],
  ]);
  expect((await api.call('GET', '/v1/calendars/acme-de')).status).toBe(200);
  expect((await api.call('GET', '/v1/calendars/nowhere')).body.code).toBe('unknown_jurisdiction');
  expect((await api.call('GET', '/v1/calendars/DE?year=soon')).body.errors[0].path).toBe('/year');
});
