import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { until } from '../support/until.ts';
import { findOperation, openTestApi, resolveLocal, type TestApi } from './client.ts';

let api: TestApi;
/** Every test has an endpoint and a receiver of its own. */
let receiver: PracticeReceiver;
let endpointId: string;
let endpoint: string;

beforeAll(async () => {
  api = await openTestApi({
    roles: ['worker', 'reconciler'],
    env: { DUEPOST_EGRESS_TIMEOUT_MS: '5000' },
  });
});

beforeEach(async () => {
  receiver = await startPracticeReceiver();
  endpoint = `orders-${randomUUID()}`;
  const { body } = await api.call('POST', '/v1/endpoints', {
    body: { name: endpoint, url: receiver.url, retry_schedule: [0, 3600], max_attempts: 3 },
  });
  endpointId = body.endpoint_id;
  receiver.setSecrets([body.secret]);
});

afterEach(() => receiver.close());

afterAll(() => api.close());

async function publish(changes: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await api.call('POST', '/v1/events', {
    body: {
      type: 'order.created',
      payload: {},
      idempotency_key: randomUUID(),
      endpoint,
      ...changes,
    },
  });
  expect(status).toBe(202);
  return body.deliveries[0].delivery_id;
}

async function show(deliveryId: string) {
  return (await api.call('GET', `/v1/deliveries/${deliveryId}`)).body;
}

function retry(deliveryId: string, body: Record<string, unknown> = {}) {
  return api.call('POST', `/v1/deliveries/${deliveryId}/retry`, { body });
}

/** Waits until so many attempts have an outcome and no further one is under way. */
function attempted(deliveryId: string, count: number) {
  return until(`${count} attempts of ${deliveryId}`, async () => {
    const body = await show(deliveryId);
    return body.attempts.length === count && body.state !== 'in_flight' && body;
  });
}

async function trailOf(deliveryId: string) {
  const { rows } = await api.product.parts.pool.query(
    `select event, actor, detail::jsonb as detail from trail where delivery_id = $1 order by entry`,
    [deliveryId],
  );
  return rows;
}

test('a delivery shows its attempts, each as it went', async () => {
  receiver.setAnswers([503, 200]);
  const deliveryId = await publish({ contract_ref: 'pol-shown' });
  const waiting = await attempted(deliveryId, 1);
  expect(waiting).toMatchObject({
    delivery_id: deliveryId,
    state: 'due',
    deadline_at: null,
    attempt: 1,
    max_attempts: 3,
    cycle: 1,
    contract_ref: 'pol-shown',
    endpoint_id: endpointId,
    reminder_id: null,
    dead_reason: null,
    ended_at: null,
  });
  expect(waiting.idempotency_key).toMatch(new RegExp(`:${endpointId}$`));
  expect(waiting.attempts[0]).toMatchObject({
    attempt: 1,
    outcome: 'retryable',
    status: 503,
    error: null,
    url: receiver.url,
    retry_after_seconds: null,
    retry_after_clamped: false,
    next_due_at: waiting.due_at,
  });
  expect(waiting.attempts[0].duration_ms).toBeGreaterThanOrEqual(0);

  expect((await retry(deliveryId)).status).toBe(202);
  const ended = await attempted(deliveryId, 2);
  expect(ended.state).toBe('delivered');
  expect(ended.due_at).toBe(ended.scheduled_at);
  expect(ended.attempts[1]).toMatchObject({
    attempt: 2,
    outcome: 'delivered',
    status: 200,
    next_due_at: null,
  });
});

test('an attempt that is under way is shown without an outcome', async () => {
  receiver.setAnswers(['hang']);
  const deliveryId = await publish();
  const body = await until('the attempt', async () => {
    const shown = await show(deliveryId);
    return shown.state === 'in_flight' && shown;
  });
  expect(body.attempts).toMatchObject([{ attempt: 1, outcome: null, status: null, finished_at: null }]);
  expect(body.claimed_by).toMatch(/^worker@/);
  for (const act of ['retry', 'cancel']) {
    const answer = await api.call('POST', `/v1/deliveries/${deliveryId}/${act}`);
    expect([answer.status, answer.body.code]).toEqual([409, 'transition_not_allowed']);
  }
});

describe('retry now', () => {
  test('makes attempts on top of those that the policy gives', async () => {
    receiver.setAnswers([503]);
    const deliveryId = await publish();
    let body = await attempted(deliveryId, 1);
    const waitedMs = (): number => Date.parse(body.due_at) - Date.parse(body.attempts.at(-1).finished_at);
    for (let n = 2; n <= 11; n += 1) {
      const answer = await retry(deliveryId, { reason: 'the customer asked' });
      expect(answer.status).toBe(202);
      body = await attempted(deliveryId, n);
      // Still the wait before the second attempt, however many were made by hand.
      expect(body.state).toBe('due');
      expect(Math.round(waitedMs() / 1000)).toBe(3600);
    }
    expect(body).toMatchObject({ attempt: 11, manual_attempts: 10, max_attempts: 3, cycle: 1 });
    expect(body.attempts.map((a: { attempt: number }) => a.attempt)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ]);
    const entries = (await trailOf(deliveryId)).filter((e) => e.event === 'retry_now');
    expect(entries).toHaveLength(10);
    expect(entries[0]).toMatchObject({ detail: { reason: 'the customer asked' } });
    expect(entries[0].actor).toMatch(/^key:admin \(key_/);
  });

  test('before the first attempt is early, and the first one still follows', async () => {
    receiver.setAnswers([503, 200]);
    const at = new Date(Date.now() + 3_600_000);
    const deliveryId = await publish({ deliver_at: at.toISOString() });
    expect((await retry(deliveryId)).status).toBe(202);
    const body = await attempted(deliveryId, 1);
    expect(body).toMatchObject({ state: 'due', due_at: at.toISOString(), scheduled_at: at.toISOString() });
  });

  test('of what is due already is refused', async () => {
    await api.call('PATCH', `/v1/endpoints/${endpoint}`, { body: { max_in_flight: 1 } });
    receiver.setAnswers(['hang']);
    const first = await publish();
    await until('the first to hang', async () => (await show(first)).state === 'in_flight');
    const second = await publish();
    const answer = await retry(second);
    expect([answer.status, answer.body.code]).toEqual([409, 'transition_not_allowed']);
    expect(answer.body.detail).toContain('due already');
    await api.call('PATCH', `/v1/endpoints/${endpoint}`, { body: { max_in_flight: null } });
  });

  test('of what was delivered is refused, by force too', async () => {
    const deliveryId = await publish();
    await attempted(deliveryId, 1);
    for (const force of [false, true]) {
      const answer = await retry(deliveryId, { force });
      expect([answer.status, answer.body.code]).toEqual([409, 'already_delivered']);
    }
    const cancelled = await api.call('POST', `/v1/deliveries/${deliveryId}/cancel`);
    expect([cancelled.status, cancelled.body.code]).toEqual([409, 'already_delivered']);
    // So that is a code to look for, and it is promised.
    const promised = ['retry', 'cancel'].map((act) => {
      const { responses } = findOperation(api.document, 'POST', `/v1/deliveries/${deliveryId}/${act}`);
      return Object.keys(
        resolveLocal(api.document, responses[409]).content['application/problem+json'].examples,
      );
    });
    expect(promised).toEqual([
      ['already_delivered', 'transition_not_allowed', 'endpoint_disabled'],
      ['already_delivered', 'transition_not_allowed'],
    ]);
    expect(receiver.effects()).toHaveLength(1);
  });

  test('of what is not there is not found', async () => {
    const answer = await retry('dlv_00000000000000000000000000');
    expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
  });
});

describe('a replay', () => {
  /** An event that is dead after one attempt. */
  async function die(changes: Record<string, unknown> = {}): Promise<string> {
    await api.call('PATCH', `/v1/endpoints/${endpoint}`, {
      body: { policy: { kind: 'schedule', max_attempts: 1 } },
    });
    receiver.setAnswers([503]);
    const deliveryId = await publish(changes);
    const body = await attempted(deliveryId, 1);
    expect(body).toMatchObject({ state: 'dead_lettered', dead_reason: 'attempts_exhausted' });
    await api.call('PATCH', `/v1/endpoints/${endpoint}`, {
      body: { retry_schedule: [0, 3600], max_attempts: 3 },
    });
    return deliveryId;
  }

  test('is a new cycle with the same key and bytes, new attempt numbers and its own audit record', async () => {
    const deliveryId = await die({ contract_ref: 'pol-replay' });
    receiver.setAnswers([200]);
    const answer = await retry(deliveryId, { reason: 'the receiver is repaired' });
    expect(answer.status).toBe(202);
    const body = await attempted(deliveryId, 2);
    expect(body).toMatchObject({ state: 'delivered', cycle: 2, attempt: 2, attempts_in_cycle: 1 });
    const calls = receiver.calls();
    expect(calls.map((c) => [c.attempt, c.answered])).toEqual([
      [1, 503],
      [2, 200],
    ]);
    expect(new Set(calls.map((c) => `${c.key} ${c.bodySha256} ${c.deliveryId}`)).size).toBe(1);
    const audit = await api.call('GET', '/v1/audit?contract_ref=pol-replay');
    expect(audit.body.data).toMatchObject([
      { cycle: 2, state: 'delivered', attempts: 1, in_time: true },
      { cycle: 1, state: 'dead_lettered', attempts: 1, in_time: false },
    ]);
    expect(new Set(audit.body.data.map((r: { body_sha256: string }) => r.body_sha256)).size).toBe(1);
    const entry = (await trailOf(deliveryId)).find((e) => e.event === 'replay');
    expect(entry).toMatchObject({ detail: { reason: 'the receiver is repaired' } });
    expect(entry.actor).toMatch(/^key:admin \(key_/);
  });

  test('is granted once to many who ask at the same time', async () => {
    const deliveryId = await die();
    receiver.setAnswers(['hang']);
    const answers = await Promise.all(Array.from({ length: 10 }, () => retry(deliveryId)));
    expect(answers.filter((a) => a.status === 202)).toHaveLength(1);
    expect(answers.filter((a) => a.status === 409)).toHaveLength(9);
    expect(await attempted(deliveryId, 2)).toMatchObject({ cycle: 2, manual_attempts: 0 });
  });

  test('after the deadline needs force, runs without one, and says so in the trail', async () => {
    const deliveryId = await die();
    await api.product.parts.pool.query(
      `update delivery set deadline_at = now() - interval '1 hour' where delivery_id = $1`,
      [deliveryId],
    );
    const refused = await retry(deliveryId);
    expect([refused.status, refused.body.code]).toEqual([422, 'window_closed']);
    receiver.setAnswers([200]);
    expect((await retry(deliveryId, { force: true, reason: 'late is better than never' })).status).toBe(202);
    expect(await attempted(deliveryId, 2)).toMatchObject({ state: 'delivered', deadline_at: null });
    const entry = (await trailOf(deliveryId)).find((e) => e.event === 'replay');
    expect(entry.detail).toEqual({ reason: 'late is better than never', without_deadline: true });
  });

  test('for an endpoint that is paused is held until it is resumed', async () => {
    const deliveryId = await die();
    await api.call('POST', `/v1/endpoints/${endpoint}/pause`);
    expect((await retry(deliveryId)).body.state).toBe('held');
    receiver.setAnswers([200]);
    await api.call('POST', `/v1/endpoints/${endpoint}/resume`);
    expect(await attempted(deliveryId, 2)).toMatchObject({ state: 'delivered', cycle: 2 });
  });
});

test('a cancellation ends what waits, with who and why, and can be taken back', async () => {
  const deliveryId = await publish({
    deliver_at: new Date(Date.now() + 3_600_000).toISOString(),
    contract_ref: 'pol-cancel',
  });
  const cancelled = await api.call('POST', `/v1/deliveries/${deliveryId}/cancel`, {
    body: { reason: 'ordered by mistake' },
  });
  expect(cancelled.status).toBe(200);
  expect(cancelled.body).toMatchObject({ state: 'cancelled', attempts: [] });
  const again = await api.call('POST', `/v1/deliveries/${deliveryId}/cancel`);
  expect([again.status, again.body.code]).toEqual([409, 'transition_not_allowed']);
  const entry = (await trailOf(deliveryId)).at(-1);
  expect(entry).toMatchObject({ event: 'cancel', detail: { reason: 'ordered by mistake' } });
  const audit = await api.call('GET', '/v1/audit?contract_ref=pol-cancel');
  expect(audit.body.data).toMatchObject([{ state: 'cancelled', attempts: 0, first_attempt_at: null }]);
  // Taken back, it waits for its time; asked for once more, it is sent now.
  const takenBack = await retry(deliveryId);
  expect(takenBack.status).toBe(202);
  expect(takenBack.body).toMatchObject({ state: 'due', cycle: 2, due_at: takenBack.body.scheduled_at });
  expect((await retry(deliveryId)).status).toBe(202);
  expect(await attempted(deliveryId, 1)).toMatchObject({ state: 'delivered', cycle: 2 });
});
