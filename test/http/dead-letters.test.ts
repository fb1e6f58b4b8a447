import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDeliveryOperator } from '../../src/pipeline/operate/deliveries.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;
let round = 0;

beforeAll(async () => {
  api = await openTestApi();
});

afterAll(() => api.close());

beforeEach(async () => {
  round += 1;
  for (const name of [`a${round}`, `b${round}`]) {
    await api.call('POST', '/v1/endpoints', { body: { name, url: 'http://127.0.0.1:8017/' } });
  }
});

/** Makes so many dead letters of an endpoint, without anybody calling it. */
async function bury(endpoint: string, count: number, contract_ref = `pol-${endpoint}`): Promise<string[]> {
  const ids: string[] = [];
  // What is held has no wake-up.
  await api.call('POST', `/v1/endpoints/${endpoint}/pause`);
  for (let from = 0; from < count; from += 500) {
    const events = Array.from({ length: Math.min(500, count - from) }, (_, n) => ({
      type: 'order.created',
      payload: n,
      idempotency_key: `${endpoint}-${contract_ref}-${from + n}`,
      endpoint,
      contract_ref,
    }));
    const { body } = await api.call('POST', '/v1/events/batch', { body: { events } });
    ids.push(
      ...body.data.map((e: { deliveries: { delivery_id: string }[] }) => e.deliveries[0]?.delivery_id),
    );
  }
  await api.product.parts.pool.query(
    `update delivery set state = 'dead_lettered', dead_reason = 'attempts_exhausted', due_at = null, ended_at = now() where delivery_id = any($1)`,
    [ids],
  );
  await api.call('POST', `/v1/endpoints/${endpoint}/resume`);
  return ids;
}

function replay(body: Record<string, unknown>) {
  return api.call('POST', '/v1/dead-letters/replay', { body });
}

async function countDead(endpoint: string): Promise<number> {
  const { body } = await api.call('GET', `/v1/dead-letters?endpoint_id=${endpoint}&limit=500`);
  return body.data.length;
}

test('dead letters are listed with their reason, and by filter', async () => {
  const [a, b] = [`a${round}`, `b${round}`];
  await bury(a, 2);
  await bury(b, 1, 'pol-special');
  const { body } = await api.call('GET', `/v1/dead-letters?endpoint_id=${a}&dead_reason=attempts_exhausted`);
  expect(body.data).toHaveLength(2);
  expect(body.data[0]).toMatchObject({
    state: 'dead_lettered',
    dead_reason: 'attempts_exhausted',
    endpoint_name: a,
    last_outcome: null,
  });
  const listed = async (query: string) =>
    (await api.call('GET', `/v1/dead-letters?${query}`)).body.data.length;
  expect(await listed('contract_ref=pol-special')).toBe(1);
  expect(await listed(`endpoint_id=${a}&dead_reason=deadline_passed`)).toBe(0);
  const now = new Date(Date.now() + 1000).toISOString();
  expect(await listed(`endpoint_id=${a}&dead_after=${now}`)).toBe(0);
  expect(await listed(`endpoint_id=${a}&dead_before=${now}`)).toBe(2);
  expect((await api.call('GET', '/v1/dead-letters?endpoint_id=nobody')).status).toBe(404);
  expect((await api.call('GET', '/v1/dead-letters?dead_reason=bored')).status).toBe(400);
});

test('a dry run counts and changes nothing; the replay does what it counted, and no more', async () => {
  const [a, b] = [`a${round}`, `b${round}`];
  await bury(a, 3);
  await bury(b, 2);
  const filter = { endpoint_id: a };
  const dry = await replay({ filter, dry_run: true });
  expect([dry.status, dry.body]).toEqual([
    200,
    {
      matched: 3,
      replayed: 0,
      skipped: { endpoint_disabled: 0, deadline_passed: 0 },
      dry_run: true,
      complete: true,
    },
  ]);
  expect(await countDead(a)).toBe(3);
  const done = await replay({ filter, reason: 'repaired' });
  expect(done.body).toMatchObject({ matched: 3, replayed: 3, dry_run: false, complete: true });
  expect([await countDead(a), await countDead(b)]).toEqual([0, 2]);
  const due = await api.call('GET', `/v1/deliveries?endpoint_id=${a}&state=due`);
  expect(due.body.data.map((d: { cycle: number }) => d.cycle)).toEqual([2, 2, 2]);
  expect((await replay({ filter })).body).toMatchObject({ matched: 0, replayed: 0 });
});

test('more than a page is replayed, without a cap', async () => {
  const a = `a${round}`;
  await bury(a, 1_201);
  expect((await replay({ filter: { endpoint_id: a } })).body).toMatchObject({
    matched: 1_201,
    replayed: 1_201,
  });
  expect(await countDead(a)).toBe(0);
});

test('what cannot be sent is left, and counted with the reason', async () => {
  const [a, b] = [`a${round}`, `b${round}`];
  const [late] = await bury(a, 2, `pol-${round}`);
  await bury(b, 1, `pol-${round}`);
  await api.product.parts.pool.query(
    `update delivery set deadline_at = now() + interval '1 second' where delivery_id = $1`,
    [late],
  );
  await api.call('DELETE', `/v1/endpoints/${b}`);
  const filter = { contract_ref: `pol-${round}` };
  const skipped = { endpoint_disabled: 1, deadline_passed: 1 };
  expect((await replay({ filter, dry_run: true })).body).toMatchObject({ matched: 3, replayed: 0, skipped });
  expect((await replay({ filter })).body).toMatchObject({ matched: 3, replayed: 1, skipped });
  expect((await replay({ filter, force: true })).body).toMatchObject({
    matched: 2,
    replayed: 1,
    skipped: { endpoint_disabled: 1, deadline_passed: 0 },
  });
});

test('two at the same time replay each dead letter once', async () => {
  const a = `a${round}`;
  const ids = await bury(a, 700);
  const both = await Promise.all([
    replay({ filter: { endpoint_id: a } }),
    replay({ filter: { endpoint_id: a } }),
  ]);
  expect(both[0].body.replayed + both[1].body.replayed).toBe(700);
  const { rows } = await api.product.parts.pool.query(
    `select distinct cycle from delivery where delivery_id = any($1)`,
    [ids],
  );
  expect(rows).toEqual([{ cycle: 2 }]);
});

test('a replay waits while the workers have enough to do, and ends early when told to', async () => {
  const a = `a${round}`;
  await bury(a, 1_100);
  const { parts, config } = api.product;
  const waiting = [5_000, 3_000, 0, 9_000];
  const asked: number[] = [];
  const abort = new AbortController();
  const operator = createDeliveryOperator({
    ...parts,
    deliveriesQueue: 'any',
    timeoutMs: config.egress.timeoutMs,
    publisher: {
      countReady: async () => {
        const depth = waiting.shift() ?? 0;
        asked.push(depth);
        if (asked.length === 4) abort.abort();
        return depth;
      },
    },
  });
  const report = await operator.replay(
    { contractRef: `pol-${a}` },
    { dryRun: false, force: false, signal: abort.signal },
    { actor: 'test' },
  );
  expect(asked).toEqual([5_000, 3_000, 0, 9_000]);
  expect(report).toMatchObject({ matched: 1_100, replayed: 1_000, complete: false });
  expect(await countDead(a)).toBe(100);
});

test('a filter is needed, and what is wrong in it is named', async () => {
  expect((await replay({})).body.errors[0].path).toBe('/filter');
  expect((await replay({ filter: { endpoint: 'x' } })).body.errors[0].path).toBe('/filter/endpoint');
  expect((await replay({ filter: { endpoint_id: 'nobody' } })).body.errors[0].path).toBe(
    '/filter/endpoint_id',
  );
});
