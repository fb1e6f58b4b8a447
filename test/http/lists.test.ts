import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeCursor, encodeCursor } from '../../src/http/cursor.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;
let published = 0;

beforeAll(async () => {
  api = await openTestApi();
  for (const name of ['one', 'two']) {
    await api.call('POST', '/v1/endpoints', { body: { name, url: 'http://127.0.0.1:8017/' } });
  }
});

afterAll(() => api.close());

async function publish(count: number, more: Record<string, unknown> = {}): Promise<string[]> {
  const events = Array.from({ length: count }, () => {
    published += 1;
    return { type: 'a.b', payload: published, idempotency_key: `l-${published}`, endpoint: 'one', ...more };
  });
  const { body } = await api.call('POST', '/v1/events/batch', { body: { events } });
  return body.data.map((e: { deliveries: { delivery_id: string }[] }) => e.deliveries[0]?.delivery_id);
}

function ids(body: { data: { delivery_id: string }[] }): string[] {
  return body.data.map((d) => d.delivery_id);
}

test('pages are complete and without repetition while rows are added', async () => {
  const before = await publish(25);
  const seen: string[] = [];
  let path = '/v1/deliveries?limit=4';
  for (;;) {
    const { body } = await api.call('GET', path);
    seen.push(...ids(body));
    if (!body.has_more) break;
    await publish(3);
    path = `/v1/deliveries?limit=4&cursor=${body.next_cursor}`;
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.sort()).toEqual(before.sort());
});

test('endpoints that are made meanwhile come at the end', async () => {
  const names: string[] = [];
  let path = '/v1/endpoints?limit=1';
  for (let n = 0; ; n += 1) {
    const { body } = await api.call('GET', path);
    names.push(...body.data.map((e: { name: string }) => e.name));
    if (n === 0)
      await api.call('POST', '/v1/endpoints', { body: { name: 'three', url: 'http://127.0.0.1:8017/' } });
    if (!body.has_more) break;
    path = `/v1/endpoints?limit=1&cursor=${body.next_cursor}`;
  }
  expect(names).toEqual(['one', 'two', 'three']);
});

test('a list of exactly a page has no more', async () => {
  await publish(3, { contract_ref: 'pol-3' });
  const { body } = await api.call('GET', '/v1/deliveries?contract_ref=pol-3&limit=3');
  expect([body.data.length, body.has_more, body.next_cursor]).toEqual([3, false, null]);
});

test('a cursor belongs to its list and filter', async () => {
  await publish(3);
  const { body } = await api.call('GET', '/v1/deliveries?limit=1');
  for (const path of ['/v1/deliveries?state=due&', '/v1/dead-letters?', '/v1/audit?']) {
    const answer = await api.call('GET', `${path}limit=1&cursor=${body.next_cursor}`);
    expect([path, answer.status, answer.body.errors[0].path]).toEqual([path, 400, '/cursor']);
  }
});

test('deliveries are listed by state, endpoint, contract and due time, and by several of them', async () => {
  const at = new Date(Date.now() + 86_400_000).toISOString();
  const [later] = await publish(1, { endpoint: 'two', contract_ref: 'pol-f', deliver_at: at });
  const [now] = await publish(1, { endpoint: 'two', contract_ref: 'pol-f' });
  const [other] = await publish(1, { endpoint: 'two', contract_ref: 'pol-g' });
  await api.call('POST', `/v1/deliveries/${other}/cancel`);
  const listed = async (query: string) => ids((await api.call('GET', `/v1/deliveries?${query}`)).body);
  expect(await listed('contract_ref=pol-f')).toEqual([now, later]);
  expect(await listed('endpoint_id=two')).toEqual([other, now, later]);
  expect(await listed('endpoint_id=two&state=cancelled')).toEqual([other]);
  expect(await listed('endpoint_id=two&state=due')).toEqual([now, later]);
  expect(await listed('endpoint_id=two&contract_ref=pol-g')).toEqual([other]);
  expect(await listed(`state=due&due_after=${at}`)).toEqual([later]);
  expect(await listed(`endpoint_id=two&due_before=${at}`)).toEqual([other, now]);
  expect(
    await listed(`endpoint_id=two&due_before=${encodeURIComponent('2027-01-01T00:00:00+14:00')}`),
  ).toContain(now);
  expect(await listed('state=held')).toEqual([]);
  expect(await listed('contract_ref=nobody')).toEqual([]);
});

test('a cursor gives back the position it was made of, and anything else is refused', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.oneof(fc.string(), fc.integer())), (list, position) => {
      expect(decodeCursor(list, encodeCursor(list, position))).toEqual(position);
      expect(() => decodeCursor([list, 'other'], encodeCursor(list, position))).toThrow(/cursor/);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => decodeCursor('list', text)).toThrow(/cursor/);
    }),
  );
});
