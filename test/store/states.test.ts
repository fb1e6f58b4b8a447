import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  countDeliveries,
  countEndpoints,
  listTroubledEndpoints,
  measureBacklog,
  readPulse,
} from '../../src/store/watch/states.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
  await database.pool.query(`
    insert into endpoint (endpoint_id, name, url, consecutive_failures, status)
    values ('ep_a', 'answers', 'https://a.example/', 0, 'active'),
           ('ep_b', 'fails', 'https://b.example/', 7, 'active'),
           ('ep_c', 'paused', 'https://c.example/', 0, 'paused')`);
  // One hundred delivered, and of living ones: held for an hour, due for five minutes, due to a failing one, and later.
  await database.pool.query(`
    insert into delivery (delivery_id, event_id, endpoint_id, idempotency_key, state, due_at, scheduled_at, ended_at,
                          trail_length, trail_sha256)
    select 'dlv_' || i, 'evt_' || i, 'ep_a', i, 'delivered', null::timestamptz, now(), now(), 1, ''::bytea
      from generate_series(1, 100) i
    union all
    select 'dlv_held_' || i, 'evt_' || i, 'ep_c', i, 'held', now() - interval '1 hour', now(), null, 1, ''
      from generate_series(1, 20) i
    union all
    select 'dlv_due', 'evt_1', 'ep_a', '1', 'due', now() - interval '5 minutes', now(), null, 1, ''
    union all
    select 'dlv_due_failing', 'evt_1', 'ep_b', '1', 'due', now() - interval '30 minutes', now(), null, 1, ''
    union all
    select 'dlv_later', 'evt_1', 'ep_a', '1', 'due', now() + interval '1 day', now(), null, 1, ''`);
});

afterAll(() => database.close());

test('counts exactly what is few', async () => {
  expect(await countDeliveries(database.pool, 1_000)).toEqual({
    counts: { due: 3, in_flight: 0, held: 20, delivered: 100, dead_lettered: 0, cancelled: 0 },
    estimated: false,
  });
});

test('counts the living and estimates the ended when they are many', async () => {
  await database.pool.query('analyze delivery');
  expect(await countDeliveries(database.pool, 50)).toEqual({
    counts: { due: 3, in_flight: 0, held: 20, delivered: 100, dead_lettered: 0, cancelled: 0 },
    estimated: true,
  });
});

test('reads no more rows of a big table than it was told', async () => {
  const plan = await database.pool.query(`
    explain (analyze, format json)
    select state from delivery where due_at is not null order by due_at, delivery_id limit 5`);
  expect(JSON.stringify(plan.rows)).toContain('"Index Name":"delivery_due"');
});

test('the oldest due delivery is that of an endpoint that answers, whatever is held before it', async () => {
  const backlog = await measureBacklog(database.pool, { atMost: 1_000, failingAfter: 5 });
  expect(backlog.overdue).toEqual({ ok: 1, failing: 1 });
  expect(Math.round(backlog.oldestMs.ok / 60_000)).toBe(5);
  expect(Math.round(backlog.oldestMs.failing / 60_000)).toBe(30);
});

test('the oldest due delivery is found behind more held ones than are counted', async () => {
  const backlog = await measureBacklog(database.pool, { atMost: 5, failingAfter: 5 });
  expect(Math.round(backlog.oldestMs.ok / 60_000)).toBe(5);
});

test('counts endpoints by condition and lists those in trouble, the worst first', async () => {
  expect(Object.fromEntries(await countEndpoints(database.pool, 5))).toEqual({
    ok: 1,
    failing: 1,
    paused: 1,
  });
  expect((await listTroubledEndpoints(database.pool, 10)).map((e) => e.name)).toEqual(['fails', 'paused']);
});

test('counts flagged deliveries and waiting notices up to a bound', async () => {
  await database.pool.query(`update delivery set at_risk_at = now() where state = 'held'`);
  await database.pool.query(`insert into notice (name, body) values ('x', '{}'), ('y', '{}')`);
  expect(await readPulse(database.pool, 12)).toMatchObject({ atRisk: 12, noticesWaiting: 2 });
});
