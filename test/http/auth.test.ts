import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeKey } from '../../src/pipeline/operate/keys.ts';
import { until } from '../support/until.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi();
});

afterAll(() => api.close());

/** Sends header lines as they are, which no HTTP client would, and gives the status line and the rest. */
function sendRaw(...lines: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(api.url).port) });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    const head = ['GET /v1/endpoints HTTP/1.1', 'Host: x', 'Connection: close', ...lines, '', ''].join(
      '\r\n',
    );
    socket.write(Buffer.from(head, 'utf8'));
  });
}

describe('a key that is none', () => {
  const hex = (count: number): string => 'a'.repeat(count);
  const values = ['', ' ', 'x', 'Bearer', 'Bearer ', 'Bearer x', 'Basic dXNlcjpwYXNz', `Bearer ${hex(63)}`];
  const more = [
    `Bearer ${hex(64)}`,
    `Bearer ${hex(65)}`,
    `Bearer é${hex(63)}`,
    `Bearer ${hex(9000)}`,
    'Bearer a b',
  ];

  test.each([...values, ...more])('is answered with 401 and how to do better: %j', async (value) => {
    const answer = await sendRaw(`Authorization: ${value}`);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toMatch(/^www-authenticate: Bearer realm="duepost"/im);
    expect(answer).toContain('"code":"unauthorized"');
  });

  test('is answered with 401 when there is none, or two', async () => {
    expect(await sendRaw()).toMatch(/^HTTP\/1\.1 401 /);
    const valid = `Authorization: Bearer ${api.adminKey}`;
    expect(await sendRaw(valid)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await sendRaw(valid, valid)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await sendRaw(valid, 'authorization: Bearer other')).toMatch(/^HTTP\/1\.1 401 /);
  });

  test('is refused before its body is looked at', async () => {
    const answer = await api.call('POST', '/v1/events', { key: 'dpk_wrong', raw: 'x'.repeat(5_000_000) });
    expect(answer.status).toBe(401);
  });

  test('is never told to the log', async () => {
    await api.call('GET', '/v1/endpoints', { key: 'dpk_SECRETKEY' });
    await api.call('GET', '/v1/endpoints');
    const told = JSON.stringify(api.product.recorded.lines);
    expect(told).not.toContain('SECRETKEY');
    expect(told).not.toContain(api.adminKey);
  });
});

test('a key is refused once it has expired', async () => {
  const expired = await api.createKey(['read'], new Date(Date.now() - 1000));
  expect((await api.call('GET', '/v1/endpoints', { key: expired })).status).toBe(401);
});

test('a key that is revoked is refused within seconds, although it was just used', async () => {
  const key = await api.createKey(['read', 'publish']);
  expect((await api.call('GET', '/v1/endpoints', { key })).status).toBe(200);
  await revokeKey(api.product.parts.pool, 'read-publish', { actor: 'test' });
  await until('the revocation to act', async () => {
    return (await api.call('GET', '/v1/endpoints', { key })).status === 401;
  });
});

test('a key that is used many times at once is looked up once, and its use is noted', async () => {
  const key = await api.createKey(['operate']);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => api.call('GET', '/v1/endpoints', { key })),
  );
  expect(new Set(answers.map((a) => a.status))).toEqual(new Set([200]));
  const found = await api.product.parts.pool.query(`select last_used_at from api_key where name = 'operate'`);
  expect(found.rows[0].last_used_at).toBeInstanceOf(Date);
});

describe('a scope', () => {
  const calls = [
    ['POST', '/v1/events', ['publish']],
    ['POST', '/v1/events/batch', ['publish']],
    ['POST', '/v1/reminders', ['publish']],
    ['PATCH', '/v1/reminders/rem_x', ['publish', 'operate']],
    ['POST', '/v1/reminders/rem_x/cancel', ['publish', 'operate']],
    ['GET', '/v1/reminders', ['read', 'operate']],
    ['GET', '/v1/deliveries', ['read', 'operate']],
    ['GET', '/v1/dead-letters', ['read', 'operate']],
    ['GET', '/v1/audit', ['read', 'operate']],
    ['POST', '/v1/calendars/explain', ['read', 'publish', 'operate']],
    ['POST', '/v1/endpoints/x/pause', ['operate']],
    ['POST', '/v1/deliveries/dlv_x/retry', ['operate']],
    ['POST', '/v1/deliveries/dlv_x/cancel', ['operate']],
    ['POST', '/v1/dead-letters/replay', ['operate']],
    ['POST', '/v1/endpoints', []],
    ['PATCH', '/v1/endpoints/x', []],
    ['DELETE', '/v1/endpoints/x', []],
    ['POST', '/v1/endpoints/x/rotate-secret', []],
  ] as const;

  test.each(['publish', 'read', 'operate', 'admin'] as const)('%s allows what it should', async (scope) => {
    const key = await api.createKey([scope]);
    for (const [method, path, scopes] of calls) {
      const isAllowed = scope === 'admin' || (scopes as readonly string[]).includes(scope);
      const { status, body } = await api.call(method, path, {
        key,
        ...(method === 'GET' ? {} : { body: {} }),
      });
      expect([method, path, status === 403]).toEqual([method, path, !isAllowed]);
      if (isAllowed) continue;
      expect(body.code).toBe('forbidden');
      expect(body.detail).toMatch(scopes.length === 0 ? /scope admin/ : new RegExp(`scope ${scopes[0]}`));
    }
  });
});

test('a key within its rate is served, beyond it told when to come again', async () => {
  const { config } = api.product;
  const limited = await api.startAnother({ ...config, api: { rateLimitPerMinute: 3 } });
  const ask = (key: string) =>
    fetch(`${limited.url}/v1/endpoints`, { headers: { authorization: `Bearer ${key}` } });
  const other = await api.createKey(['read']);
  const answers = [];
  for (let n = 0; n < 4; n += 1) answers.push(await ask(api.adminKey));
  expect(answers.map((a) => a.status)).toEqual([200, 200, 200, 429]);
  expect(Number(answers[3]?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await answers[3]?.json()).toMatchObject({ code: 'rate_limited', status: 429 });
  expect((await ask(other)).status).toBe(200);
  await limited.stop();
});
