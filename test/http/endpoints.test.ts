import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { until } from '../support/until.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;
let receiver: PracticeReceiver;

beforeAll(async () => {
  api = await openTestApi({ roles: ['worker'] });
  receiver = await startPracticeReceiver();
});

afterAll(async () => {
  await receiver.close();
  await api.close();
});

async function create(name: string, more: Record<string, unknown> = {}) {
  const answer = await api.call('POST', '/v1/endpoints', { body: { name, url: receiver.url, ...more } });
  expect(answer.status).toBe(201);
  return answer.body;
}

async function publish(endpoint: string, key: string): Promise<string> {
  const { body } = await api.call('POST', '/v1/events', {
    body: { type: 'order.created', payload: {}, idempotency_key: key, endpoint },
  });
  return body.deliveries[0].delivery_id;
}

async function stateOf(deliveryId: string): Promise<string> {
  return (await api.call('GET', `/v1/deliveries/${deliveryId}`)).body.state;
}

test('an endpoint is created with its secret, which is shown this once', async () => {
  const created = await create('plain', { headers: { 'X-Token': 'SECRETVALUE' } });
  const { secret, ...endpoint } = created;
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(endpoint).toMatchObject({
    name: 'plain',
    url: receiver.url,
    status: 'active',
    status_reason: null,
    mode: 'live',
    event_types: ['*'],
    policy: null,
    consecutive_failures: 0,
    headers: { 'X-Token': '(not shown)' },
  });
  for (const reference of [endpoint.endpoint_id, 'plain']) {
    const shown = await api.call('GET', `/v1/endpoints/${reference}`);
    expect(shown.body).toEqual(endpoint);
    expect(shown.text).not.toContain('SECRETVALUE');
  }
  expect((await api.call('GET', '/v1/endpoints/nobody')).status).toBe(404);
});

test('what could be an id is no name: it would be taken for another endpoint', async () => {
  const refused = await api.call('POST', '/v1/endpoints', {
    body: { name: 'ep_01k8r2tq3fe0ps6m2v4x9y7zab', url: receiver.url },
  });
  expect([refused.status, refused.body.errors?.[0]?.path]).toEqual([400, '/name']);
});

test('a name that is taken is refused, at creation and at renaming, and free again after deletion', async () => {
  await create('one');
  await create('two');
  const again = await api.call('POST', '/v1/endpoints', { body: { name: 'one', url: receiver.url } });
  expect([again.status, again.body.code]).toEqual([409, 'name_taken']);
  const renamed = await api.call('PATCH', '/v1/endpoints/two', { body: { name: 'one' } });
  expect([renamed.status, renamed.body.code]).toEqual([409, 'name_taken']);
  expect(renamed.text).not.toMatch(/duplicate key|constraint|endpoint_name/);
  expect((await api.call('DELETE', '/v1/endpoints/one')).status).toBe(204);
  expect((await api.call('GET', '/v1/endpoints/one')).status).toBe(404);
  expect((await api.call('PATCH', '/v1/endpoints/two', { body: { name: 'one' } })).body.name).toBe('one');
});

test('a patch changes what it names, and sets a schedule by its shorthand', async () => {
  const before = await create('patched', { event_types: ['order.*'], headers: { A: '1', B: '2' } });
  const { status, body } = await api.call('PATCH', '/v1/endpoints/patched', {
    body: { retry_schedule: [0, 10, 60, 300], max_attempts: 4, headers: { A: null, C: '3' } },
  });
  expect(status).toBe(200);
  expect(body.policy).toMatchObject({ kind: 'schedule', retry_schedule: [0, 10, 60, 300], max_attempts: 4 });
  expect(Object.keys(body.headers).sort()).toEqual(['B', 'C']);
  expect([body.endpoint_id, body.event_types]).toEqual([before.endpoint_id, ['order.*']]);
  const cleared = await api.call('PATCH', '/v1/endpoints/patched', { body: { policy: null } });
  expect(cleared.body.policy).toBeNull();
});

test.each([
  [{ colour: 'red' }, '/colour'],
  [{ status: 'paused' }, '/status'],
  [{ policy: { kind: 'schedule', max_attempts: 0 } }, '/policy/max_attempts'],
  [{ event_types: [] }, '/event_types'],
  [{ headers: { 'Idempotency-Key': 'x' } }, '/headers/Idempotency-Key'],
  [{}, ''],
])('a patch that is wrong names the member: %j', async (patch, path) => {
  await api.call('POST', '/v1/endpoints', { body: { name: 'wrong', url: receiver.url } });
  const { status, body } = await api.call('PATCH', '/v1/endpoints/wrong', { body: patch });
  expect([status, body.errors[0].path]).toEqual([400, path]);
});

test('what is shown in place of a credential is not taken for one', async () => {
  await create('edited', { headers: { 'X-Token': 'SECRETVALUE' } });
  const shown = await api.call('GET', '/v1/endpoints/edited');
  const { status, body } = await api.call('PATCH', '/v1/endpoints/edited', {
    body: { headers: shown.body.headers },
  });
  expect([status, body.code, body.errors[0].path]).toEqual([400, 'invalid_request', '/headers/X-Token']);
  expect(body.detail).toContain('leave the header out to keep it');
  const { rows } = await api.product.parts.pool.query(`select headers from endpoint where name = 'edited'`);
  expect(rows[0].headers).toEqual({ 'X-Token': 'SECRETVALUE' });
});

test('a pause holds what waits and a resumption sends it', async () => {
  await create('pausing');
  const paused = await api.call('POST', '/v1/endpoints/pausing/pause', { body: { reason: 'maintenance' } });
  expect(paused.body).toMatchObject({ status: 'paused', status_reason: 'maintenance' });
  const deliveryId = await publish('pausing', 'while-paused');
  expect(await stateOf(deliveryId)).toBe('held');
  const retried = await api.call('POST', `/v1/deliveries/${deliveryId}/retry`);
  expect([retried.status, retried.body.code]).toEqual([409, 'transition_not_allowed']);
  const resumed = await api.call('POST', '/v1/endpoints/pausing/resume');
  expect(resumed.body).toMatchObject({ status: 'active', status_reason: null });
  await until('the delivery', async () => (await stateOf(deliveryId)) === 'delivered');
});

test('what is disabled is not paused: only a resumption changes it', async () => {
  const { endpoint_id } = await create('disabled');
  await api.product.parts.pool.query(
    `update endpoint set status = 'disabled', status_reason = 'answered 410' where endpoint_id = $1`,
    [endpoint_id],
  );
  const { status, body } = await api.call('POST', '/v1/endpoints/disabled/pause');
  expect([status, body.code]).toEqual([409, 'transition_not_allowed']);
  expect(body.detail).toContain('disabled is disabled (answered 410)');
  const shown = await api.call('GET', '/v1/endpoints/disabled');
  expect(shown.body).toMatchObject({ status: 'disabled', status_reason: 'answered 410' });
  expect((await api.call('POST', '/v1/endpoints/disabled/resume')).body.status).toBe('active');
  expect((await api.call('POST', '/v1/endpoints/disabled/pause')).body.status).toBe('paused');
});

test('a deletion ends what waits', async () => {
  const created = await create('deleted');
  await api.call('POST', '/v1/endpoints/deleted/pause');
  const deliveryId = await publish('deleted', 'for-the-deleted');
  expect(
    (await api.call('DELETE', '/v1/endpoints/deleted', { body: { reason: 'customer left' } })).status,
  ).toBe(204);
  const { body } = await api.call('GET', `/v1/deliveries/${deliveryId}`);
  expect(body).toMatchObject({ state: 'dead_lettered', dead_reason: 'endpoint_gone' });
  const replayed = await api.call('POST', `/v1/deliveries/${deliveryId}/retry`);
  expect([replayed.status, replayed.body.code]).toEqual([409, 'endpoint_disabled']);
  const listed = await api.call('GET', `/v1/deliveries?endpoint_id=${created.endpoint_id}`);
  expect(listed.body.data).toHaveLength(1);
});

test('a test is a real signed call, with old and new secret while they overlap', async () => {
  const created = await create('tested');
  const other = await create('untested');
  const rotated = await api.call('POST', '/v1/endpoints/tested/rotate-secret', {
    body: { overlap_seconds: 3600, reason: 'routine' },
  });
  expect(rotated.status).toBe(200);
  expect(rotated.body.secret).not.toBe(created.secret);
  for (const secret of [created.secret, rotated.body.secret]) {
    receiver.reset();
    receiver.setSecrets([secret]);
    const tested = await api.call('POST', '/v1/endpoints/tested/test');
    expect(tested.status).toBe(202);
    expect(tested.body.type).toBe('duepost.test');
    expect(tested.body.deliveries.map((d: { endpoint_id: string }) => d.endpoint_id)).toEqual([
      created.endpoint_id,
    ]);
    const call = await until('the call', () => receiver.calls()[0]);
    expect(call).toMatchObject({ verified: true, answered: 200 });
  }
  expect((await api.call('GET', `/v1/deliveries?endpoint_id=${other.endpoint_id}`)).body.data).toEqual([]);
  expect((await api.call('POST', '/v1/endpoints/nobody/test')).status).toBe(404);
});

test('an old secret signs for a day beside the new one, for at most 30 days', async () => {
  const { endpoint_id } = await create('rotated');
  const rotate = (body: object) => api.call('POST', '/v1/endpoints/rotated/rotate-secret', { body });
  const { status, body } = await rotate({ overlap_seconds: 30 * 86_400 + 1 });
  expect([status, body.errors[0].path]).toEqual([400, '/overlap_seconds']);
  expect((await rotate({})).status).toBe(200);
  const { rows } = await api.product.parts.pool.query(
    `select round(extract(epoch from expires_at - now()) / 3600)::int as hours
       from endpoint_secret where endpoint_id = $1 order by secret_number`,
    [endpoint_id],
  );
  expect(rows).toEqual([{ hours: 24 }, { hours: null }]);
});

test('what is done to an endpoint is written down with who and why', async () => {
  const created = await create('noted');
  await api.call('POST', '/v1/endpoints/noted/pause', { body: { reason: 'a reason' } });
  const { rows } = await api.product.parts.pool.query(
    `select event, actor, detail ->> 'reason' as reason from operation where subject_id = $1 order by operation_id`,
    [created.endpoint_id],
  );
  expect(rows.map((r) => [r.event, r.reason])).toEqual([
    ['endpoint.created', null],
    ['endpoint.paused', 'a reason'],
  ]);
  expect(rows[1].actor).toMatch(/^key:admin \(key_/);
});
