import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REFUSAL_CODES } from '../../src/domain/refusal.ts';
import { PROBLEMS } from '../../src/http/problems.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import { databaseTarget, databaseThroughPort } from '../support/database.ts';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;
const MAX_PAYLOAD = 1_048_576;

beforeAll(async () => {
  api = await openTestApi();
  await api.call('POST', '/v1/endpoints', {
    body: { name: 'notices', url: 'http://127.0.0.1:8017/' },
  });
});

afterAll(() => api.close());

test('every code of a refusal has a status below 500 and a title', () => {
  for (const code of REFUSAL_CODES) {
    expect(PROBLEMS[code].status).toBeGreaterThanOrEqual(400);
    expect(PROBLEMS[code].status).toBeLessThan(500);
    expect(PROBLEMS[code].title).not.toBe('');
  }
});

test('a path that does not exist is told, without its query', async () => {
  const { status, headers, body, text } = await api.call('GET', '/v1/nothing?token=SECRETQ');
  expect(status).toBe(404);
  expect(headers.get('content-type')).toBe('application/problem+json');
  expect(body).toMatchObject({ code: 'not_found', status: 404, type: 'urn:duepost:problem:not_found' });
  expect(text).not.toContain('SECRETQ');
});

test('a method that a path does not take is answered with 405 and those it takes', async () => {
  const { status, headers, body } = await api.call('PUT', '/v1/endpoints/notices');
  expect(status).toBe(405);
  expect(headers.get('allow')).toBe('DELETE, GET, HEAD, PATCH');
  expect(body.code).toBe('method_not_allowed');
});

test('every member that is wrong is named, by pointer, at once', async () => {
  const { status, body } = await api.call('POST', '/v1/events', {
    body: { typ: 'a', idempotency_key: 'sp ace', deliver_at: 'tomorrow', payload: {}, 'a/b~c': 1 },
  });
  expect(status).toBe(400);
  expect(body.code).toBe('invalid_request');
  const errors = new Map<string, string>(
    body.errors.map((e: { path: string; message: string }) => [e.path, e.message]),
  );
  expect(new Set(errors.keys())).toEqual(
    new Set(['/a~1b~0c', '/deliver_at', '/idempotency_key', '/typ', '/type']),
  );
  expect(errors.get('/type')).toBe('type is missing');
  expect(errors.get('/typ')).toBe('typ is not known here (did you mean "type"?)');
});

test('a member that is not known hides nothing else, whatever finds it', async () => {
  const errorsOf = async (path: string, body: object) => {
    const answer = await api.call('POST', path, { body });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request']);
    return Object.fromEntries(
      answer.body.errors.map((e: { path: string; message: string }) => [e.path, e.message]),
    );
  };
  const reminder = await errorsOf('/v1/reminders', {
    contract_ref: 'pol-1',
    endpoint: 'notices',
    renewal_date: '2027-02-30',
    notice_perod: 'P30D',
    notice_period: '30 days',
    jurisdiction: 'DE-BY',
    deadline: 'P1D',
    deadline_at: '2027-01-01T00:00:00Z',
    payload: 'x'.repeat(MAX_PAYLOAD),
  });
  expect(reminder).toMatchObject({
    '/notice_perod': 'notice_perod is not known here (did you mean "notice_period"?)',
    '/notice_period': expect.stringContaining('"30 days" is no period: write P30D'),
    '/renewal_date': 'renewal_date must be a date that exists, as YYYY-MM-DD',
    '/idempotency_key': 'idempotency_key is missing',
    '/payload': `payload has ${MAX_PAYLOAD + 2} bytes, ${MAX_PAYLOAD} are allowed`,
    '/deadline_at': 'give deadline or deadline_at, not both',
  });
  const endpoint = await errorsOf('/v1/endpoints', {
    name: 'other',
    ulr: 'https://example.com/',
    max_in_flight: 0,
    policy: { kind: 'deadline', divisr: 2, jitter: 1, max_attempts: 'many' },
  });
  expect(endpoint).toEqual({
    '/ulr': 'ulr is not known here (did you mean "url"?)',
    '/url': 'url is missing',
    '/max_in_flight': 'max_in_flight must be >= 1',
    '/policy/divisr': 'divisr is not known here (did you mean "divisor"?)',
    '/policy/jitter': 'jitter must be <= 0.5',
    '/policy/max_attempts': 'max_attempts must be integer',
  });
  expect(await errorsOf('/v1/endpoints', { name: 'a', url: 'x', policy: { kind: 'slow' } })).toEqual({
    '/policy/kind': 'kind must be one of schedule, deadline',
  });
});

test.each([
  ['/v1/deliveries?stat=due', '/stat'],
  ['/v1/deliveries?state=lost', '/state'],
  ['/v1/deliveries?state=due&state=held', '/state'],
  ['/v1/deliveries?limit=0', '/limit'],
  ['/v1/deliveries?limit=501', '/limit'],
  ['/v1/deliveries?limit=ten', '/limit'],
  ['/v1/deliveries?due_before=yesterday', '/due_before'],
  ['/v1/deliveries?due_before=2027-02-30T00:00:00Z', '/due_before'],
  ['/v1/deliveries?cursor=abc', '/cursor'],
  ['/v1/audit?date=2027-13-01', '/date'],
  ['/v1/events/evt_x?verbose=1', '/verbose'],
])('what is wrong in a query is named: %s', async (path, pointer) => {
  const { status, body } = await api.call('GET', path);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect(body.errors.map((e: { path: string }) => e.path)).toContain(pointer);
});

describe('a body', () => {
  test.each([
    ['that is not JSON', '{"type":', /not valid JSON/],
    ['that is empty', '', /body/],
    ['that is an array', '[]', /must be object/],
    ['that is null', 'null', /must be object/],
    ['that is nested too deeply', `{"payload":${'['.repeat(300)}${']'.repeat(300)}}`, /nested/],
    ['that is no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /UTF-8/],
  ])('%s is refused as such', async (_what, raw, detail) => {
    const { status, body } = await api.call('POST', '/v1/events', { raw });
    expect(status).toBe(400);
    expect(body.code).toBe('invalid_request');
    expect(body.detail).toMatch(detail);
  });

  test('of another type is refused as such', async () => {
    const { status, body } = await api.call('POST', '/v1/events', {
      raw: 'type=a',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
  });

  test('may say its charset, and be a merge patch', async () => {
    for (const type of [
      'application/json; charset=utf-8',
      'application/merge-patch+json',
      'Application/JSON',
    ]) {
      const { status } = await api.call('PATCH', '/v1/endpoints/notices', {
        body: { max_in_flight: 3 },
        headers: { 'content-type': type },
      });
      expect([type, status]).toEqual([type, 200]);
    }
  });
});

describe('the limit of a payload', () => {
  /** A payload whose JSON has exactly so many bytes. */
  const payloadOf = (bytes: number): string => 'ü'.repeat((bytes - 2) / 2);
  const publish = (payload: string) =>
    api.call('POST', '/v1/events', {
      body: { type: 'big.one', payload, idempotency_key: `big-${payload.length}` },
    });

  test('holds to the byte', async () => {
    expect((await publish(payloadOf(MAX_PAYLOAD))).status).toBe(202);
    const over = await api.call('POST', '/v1/events', {
      body: { type: 'big.one', payload: `${payloadOf(MAX_PAYLOAD)}a`, idempotency_key: 'over' },
    });
    expect([over.status, over.body.code]).toEqual([413, 'payload_too_large']);
    expect(over.body.errors[0]).toEqual({
      path: '/payload',
      message: `payload has ${MAX_PAYLOAD + 1} bytes, ${MAX_PAYLOAD} are allowed`,
    });
    const stored = await api.product.parts.pool.query(`select 1 from event where idempotency_key = 'over'`);
    expect(stored.rows).toEqual([]);
  });

  test('of a whole body is told without reading it all', async () => {
    const { status, body } = await api.call('POST', '/v1/events', { raw: 'x'.repeat(17 * 1_048_576) });
    expect([status, body.code]).toEqual([413, 'payload_too_large']);
  });
});

test('what is no HTTP is answered as a problem too', async () => {
  const answer = await new Promise<string>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(api.url).port) });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    socket.write('nonsense\r\n\r\n');
  });
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain('"code":"invalid_request"');
});

test('a path that cannot be decoded is refused', async () => {
  const response = await fetch(`${api.url}/v1/endpoints/%zz`, {
    headers: { authorization: `Bearer ${api.adminKey}` },
  });
  expect(response.status).toBe(400);
  expect(response.headers.get('content-type')).toContain('application/problem+json');
});

test('a database that is away is answered with 503, and nothing inner is told', async () => {
  const proxy = await startProxy(databaseTarget());
  const { config, database } = api.product;
  const through = { ...config.database, url: databaseThroughPort(database.url, proxy.port) };
  const another = await api.startAnother({ ...config, database: through });
  const headers = { authorization: `Bearer ${api.adminKey}` };
  expect((await fetch(`${another.url}/v1/endpoints`, { headers })).status).toBe(200);
  proxy.refuse(true);
  proxy.cut();
  const before = api.product.recorded.lines.length;
  const response = await fetch(`${another.url}/v1/endpoints`, { headers });
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('1');
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ code: 'unavailable', status: 503 });
  expect(text).not.toMatch(/127\.0\.0\.1|postgres|ECONN|select/i);
  for (let n = 0; n < 20; n += 1) await fetch(`${another.url}/v1/endpoints`, { headers });
  const told = api.product.recorded.lines.slice(before).filter((line) => line.event === 'http_fault');
  expect(told).toHaveLength(1);
  proxy.refuse(false);
  await until('service again', async () => (await fetch(`${another.url}/v1/endpoints`, { headers })).ok);
  await another.stop();
  await proxy.close();
});

test('a fault of ours is answered with 500 without its text, and logged', async () => {
  const { pool } = api.product.parts;
  await pool.query('alter table event rename to event_away');
  try {
    const { status, body, text } = await api.call('GET', '/v1/events/evt_x');
    expect([status, body.code]).toEqual([500, 'internal_error']);
    expect(text).not.toMatch(/relation|event_away|select/);
  } finally {
    await pool.query('alter table event_away rename to event');
  }
  const logged = api.product.recorded.lines.findLast((line) => line.event === 'http_fault');
  expect(logged?.fields).toMatchObject({ method: 'GET', route: '/v1/events/:id' });
});

test('a broker that swallows its confirms, or is away, changes no answer', async () => {
  const { config } = api.product;
  const proxy = await startProxy(targetOf(config.broker));
  const another = await api.startAnother({
    ...config,
    broker: throughPort(config.broker, proxy.port) as never,
  });
  const publish = (key: string) =>
    fetch(`${another.url}/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'order.created', payload: {}, idempotency_key: key }),
    });
  proxy.dropReplies(true);
  expect((await publish('unconfirmed')).status).toBe(202);
  proxy.dropReplies(false);
  proxy.refuse(true);
  proxy.cut();
  expect((await publish('away')).status).toBe(202);
  const stored = await api.product.parts.pool.query(
    `select state from delivery where idempotency_key ~ '^(unconfirmed|away):'`,
  );
  expect(stored.rows).toEqual([{ state: 'due' }, { state: 'due' }]);
  proxy.refuse(false);
  await another.stop();
  await proxy.close();
});

test('secrets in the URL of an endpoint are in no answer that refuses and in no log', async () => {
  const url = 'https://10.0.0.1/T0/SECRETPATH?token=SECRETQ';
  const bodies = [
    { name: 'hook', url },
    { name: 'hook', url: `${url}#x` },
    { name: 'hook', url: `${url} ` },
    { name: 'HOOK', url },
    { name: 'hook', url: url.replace('https', 'ftp') },
    { name: 'hook', url: url + 'x'.repeat(2048) },
  ];
  for (const body of bodies) {
    const { status, text } = await api.call('POST', '/v1/endpoints', { body });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(text).not.toContain('SECRET');
  }
  expect(JSON.stringify(api.product.recorded.lines)).not.toContain('SECRET');
});
