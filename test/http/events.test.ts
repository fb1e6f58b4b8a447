import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPracticeReceiver } from '../../src/receiver/practice.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { until } from '../support/until.ts';
import { findOperation, openTestApi, type TestApi } from './client.ts';

let api: TestApi;
let amqp: AmqpClient;
const endpointIds: Record<string, string> = {};

beforeAll(async () => {
  api = await openTestApi({ roles: ['ingress'] });
  amqp = await openAmqpClient(api.product);
  for (const [name, eventTypes] of [
    ['all', ['order.*']],
    ['created', ['order.created']],
    ['off', ['order.created']],
    ['paused', ['order.created']],
  ] as const) {
    const { body } = await api.call('POST', '/v1/endpoints', {
      body: { name, url: 'http://127.0.0.1:8017/', event_types: eventTypes },
    });
    endpointIds[name] = body.endpoint_id;
  }
  await api.call('POST', '/v1/endpoints/paused/pause');
  await api.product.parts.pool.query(
    `update endpoint set status = 'disabled', status_reason = 'gone' where name = 'off'`,
  );
});

afterAll(async () => {
  await amqp.close();
  await api.close();
});

test('an event goes to every endpoint that wants its type, and says which were skipped', async () => {
  const { status, body } = await api.call('POST', '/v1/events', {
    body: { type: 'order.created', payload: { id: 1 }, idempotency_key: 'ord-1', contract_ref: 'pol-1' },
  });
  expect(status).toBe(202);
  expect(body).toMatchObject({ type: 'order.created', duplicate: false });
  const states = Object.fromEntries(
    body.deliveries.map((d: { endpoint_id: string; state: string }) => [d.endpoint_id, d.state]),
  );
  expect(states).toEqual({
    [endpointIds['all'] as string]: 'due',
    [endpointIds['created'] as string]: 'due',
    [endpointIds['off'] as string]: 'skipped',
    [endpointIds['paused'] as string]: 'held',
  });
  const shown = await api.call('GET', `/v1/events/${body.event_id}`);
  expect(shown.body).toMatchObject({ ...body, idempotency_key: 'ord-1', contract_ref: 'pol-1' });
});

test('an event that names a disabled endpoint is accepted and skipped, and no refusal is promised for it', async () => {
  const { status, body } = await api.call('POST', '/v1/events', {
    body: { type: 'order.created', payload: {}, idempotency_key: 'ord-off', endpoint: 'off' },
  });
  expect([status, body.deliveries[0].state]).toEqual([202, 'skipped']);
  const { responses } = findOperation(api.document, 'POST', '/v1/events');
  expect(responses[422]).toBeDefined();
  expect(responses[409]).toBeUndefined();
});

test('an event that is looked at shows where its deliveries are now', async () => {
  const { body } = await api.call('POST', '/v1/events', {
    body: { type: 'order.created', payload: {}, idempotency_key: 'ord-now', endpoint: 'created' },
  });
  await api.call('POST', `/v1/deliveries/${body.deliveries[0].delivery_id}/cancel`);
  const shown = await api.call('GET', `/v1/events/${body.event_id}`);
  expect(shown.body.deliveries[0].state).toBe('cancelled');
  expect((await api.call('GET', '/v1/events/evt_nothing')).status).toBe(404);
});

test('numbers of a payload are stored as they were written', async () => {
  const { status } = await api.call('POST', '/v1/events', {
    raw: '{"type":"order.paid","idempotency_key":"exact","payload":{"id":9007199254740993,"sum":1.10}}',
  });
  expect(status).toBe(202);
  const stored = await api.product.parts.pool.query(
    `select convert_from(b.bytes, 'UTF8') as text from body b join event e on e.event_id = b.source_id where e.idempotency_key = 'exact'`,
  );
  expect(stored.rows[0].text).toContain('"data":{"id":9007199254740993,"sum":1.10}');
});

describe('a batch', () => {
  test('answers for each event, in order', async () => {
    const { status, body } = await api.call('POST', '/v1/events/batch', {
      body: {
        events: [
          { type: 'order.created', payload: 1, idempotency_key: 'b-1' },
          { type: 'no spaces', payload: 2, idempotency_key: 'b-2' },
          { type: 'order.created', payload: 1, idempotency_key: 'b-1' },
          { type: 'order.created', payload: 'other', idempotency_key: 'b-1' },
          { type: 'order.created', payload: 3 },
          'nothing',
          { type: 'order.closed', payload: 4, idempotency_key: 'b-4' },
        ],
      },
    });
    expect(status).toBe(202);
    expect(body.data.map((d: { code?: string; event_id?: string }) => d.code ?? 'event')).toEqual([
      'event',
      'invalid_request',
      'event',
      'idempotency_key_reused',
      'idempotency_key_missing',
      'invalid_request',
      'event',
    ]);
    expect(body.data[2].event_id).toBe(body.data[0].event_id);
    expect(body.data[0].duplicate).not.toBe(body.data[2].duplicate);
    expect(body.data[1].errors[0].path).toBe('/type');
  });

  test('takes 500 events and no more', async () => {
    const events = Array.from({ length: 501 }, (_, n) => ({
      type: 'bulk.one',
      payload: n,
      idempotency_key: `bulk-${n}`,
    }));
    const over = await api.call('POST', '/v1/events/batch', { body: { events } });
    expect([over.status, over.body.errors[0].path]).toEqual([400, '/events']);
    const all = await api.call('POST', '/v1/events/batch', { body: { events: events.slice(0, 500) } });
    expect(all.status).toBe(202);
    expect(new Set(all.body.data.map((d: { event_id: string }) => d.event_id)).size).toBe(500);
    expect((await api.call('POST', '/v1/events/batch', { body: { events: [] } })).status).toBe(400);
  });
});

test('200 at once, over HTTP and AMQP, are one event with one answer for all', async () => {
  const event = { type: 'order.created', payload: { n: 1.0, list: [1, 2] }, endpoint: 'created' };
  const overHttp = Array.from({ length: 100 }, (_, n) =>
    n % 2 === 0
      ? api.call('POST', '/v1/events', { body: { ...event, idempotency_key: 'k2' } })
      : api.call('POST', '/v1/events', { body: event, headers: { 'idempotency-key': '"k2"' } }),
  );
  const overAmqp = Array.from({ length: 100 }, () =>
    amqp.call('event.publish', Buffer.from(JSON.stringify({ v: 1, idempotency_key: 'k2', ...event }))),
  );
  const answers = [
    ...(await Promise.all(overHttp)).map(({ status, body }) => ({ ok: status === 202, ...body })),
    ...(await Promise.all(overAmqp)).map((body) => ({ ...body, correlation_id: undefined })),
  ] as { ok: boolean; duplicate: boolean }[];
  expect(answers).toHaveLength(200);
  expect(answers.filter((a) => !a.duplicate)).toHaveLength(1);
  expect(new Set(answers.map((a) => JSON.stringify({ ...a, duplicate: undefined }))).size).toBe(1);
  expect(answers[0]?.ok).toBe(true);
  const stored = await api.product.parts.pool.query(
    `select count(*)::int as deliveries from delivery where idempotency_key like 'k2:%'`,
  );
  expect(stored.rows[0].deliveries).toBe(1);

  const other = await api.call('POST', '/v1/events', {
    body: { ...event, payload: { n: 2 }, idempotency_key: 'k2' },
  });
  expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
});

test('of many at once with different content under one key one is accepted and the others are refused', async () => {
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      api.call('POST', '/v1/events', {
        body: { type: 'order.created', payload: n, idempotency_key: 'clash' },
      }),
    ),
  );
  expect(answers.filter((a) => a.status === 202)).toHaveLength(1);
  expect(answers.filter((a) => a.body.code === 'idempotency_key_reused')).toHaveLength(29);
});

test('an event arrives at the endpoint', async () => {
  const stop = await api.product.start(['worker']);
  const receiver = await startPracticeReceiver();
  const created = await api.call('POST', '/v1/endpoints', { body: { name: 'real', url: receiver.url } });
  receiver.setSecrets([created.body.secret]);
  await api.call('POST', '/v1/events', {
    body: { type: 'order.created', payload: {}, idempotency_key: 'arrives', endpoint: 'real' },
  });
  const effect = await until('the call', () => receiver.effects()[0]);
  expect(effect.key).toBe(`arrives:${created.body.endpoint_id}`);
  await stop();
  await receiver.close();
});
