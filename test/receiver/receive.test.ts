import { readFileSync } from 'node:fs';
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Handle } from '../../src/receiver/handle-once.ts';
import { receive } from '../../src/receiver/receive.ts';
import type { Answer, Store } from '../../src/receiver/store.ts';
import { createMemoryStore } from '../../src/receiver/store-memory.ts';
import { createPostgresStore, forgetReceipts } from '../../src/receiver/store-postgres.ts';
import { until } from '../support/until.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { OTHER_SECRET, SECRET, type SignedCall, signedCall } from './signed-call.ts';

type Planned = { status: number; body: string | null } | 'waits' | 'fails';

interface Step {
  call?: string;
  finish?: string;
  webhook_id: string;
  idempotency_key: string | null;
  body: string;
  attempt?: number;
  signed?: boolean;
  handler: Planned;
  expect: { status: number; body: string | null; replayed: boolean } | null;
  handler_runs: number;
}

const { scenarios } = JSON.parse(
  readFileSync(new URL('../../conformance/idempotency.json', import.meta.url), 'utf8'),
) as { scenarios: { name: string; steps: Step[] }[] };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase('receive');
});
afterAll(() => database.drop());

/** What a framework makes of `receive`: a fault is a 500. */
async function answer<Client>(
  call: SignedCall,
  store: Store<Client>,
  handle: Handle<Client>,
): Promise<Answer> {
  return receive({ request: signedCall(call), secret: SECRET, store, handle }).then(
    (received) => received.answer,
    () => ({ status: 500 }),
  );
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function toAnswer(planned: { status: number; body: string | null }): Answer {
  return { status: planned.status, body: planned.body ?? undefined };
}

describe.each<{ label: string; open: () => Store<unknown> }>([
  { label: 'memory store', open: () => createMemoryStore() },
  { label: 'PostgreSQL store', open: () => createPostgresStore(database.pool) },
])('receive with the $label', ({ open }) => {
  let store: Store<unknown>;
  beforeEach(async () => {
    await database.pool.query('truncate duepost_receipt, effect');
    store = open();
  });

  it.each(scenarios)('$name', async ({ steps }) => {
    let runs = 0;
    const waiting = new Map<string, { finish: (answer: Answer) => void; answered: Promise<Answer> }>();
    for (const step of steps) {
      let answered: Promise<Answer> | undefined;
      if (step.finish !== undefined) {
        const open = waiting.get(step.finish);
        open?.finish(toAnswer(step.handler as { status: number; body: string | null }));
        answered = open?.answered;
      } else {
        const started = deferred<void>();
        const finished = deferred<Answer>();
        const handle: Handle<unknown> = async () => {
          runs += 1;
          started.resolve();
          if (step.handler === 'waits') return finished.promise;
          if (step.handler === 'fails') throw new Error('the handler failed');
          return toAnswer(step.handler);
        };
        answered = answer(
          {
            key: step.idempotency_key ?? undefined,
            webhookId: step.webhook_id,
            body: step.body,
            attempt: step.attempt ?? 1,
            secrets: [step.signed === false ? OTHER_SECRET : SECRET],
          },
          store,
          handle,
        );
        if (step.expect === null) {
          await started.promise;
          waiting.set(step.call ?? '', { finish: finished.resolve, answered });
        }
      }
      if (step.expect !== null) {
        const got = await answered;
        expect(got?.status).toBe(step.expect.status);
        expect(got?.headers?.['idempotency-replayed'] === 'true').toBe(step.expect.replayed);
        if (step.expect.body !== null) expect(got?.body).toBe(step.expect.body);
        if (step.expect.body === null && step.expect.status < 300) expect(got?.body).toBeUndefined();
      }
      expect(runs).toBe(step.handler_runs);
    }
  });

  it('runs the handler for one of many concurrent calls with one key', async () => {
    let runs = 0;
    const handle: Handle<unknown> = async () => {
      runs += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return { status: 201, headers: { 'webhook-receipt': 'r-1' }, body: 'done' };
    };
    const answers = await Promise.all(Array.from({ length: 60 }, () => answer({ key: 'k' }, store, handle)));

    expect(runs).toBe(1);
    const statuses = new Set(answers.map(({ status }) => status));
    statuses.delete(409);
    expect([...statuses]).toEqual([201]);
    const repeat = await answer({ key: 'k' }, store, handle);
    expect(repeat).toEqual({
      status: 201,
      headers: { 'webhook-receipt': 'r-1', 'idempotency-replayed': 'true' },
      body: 'done',
    });
    expect(runs).toBe(1);
  });

  it('takes one of two keys that come with one delivery id at the same time', async () => {
    let effects = 0;
    const handle: Handle<unknown> = async (_call, client) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (client === undefined) effects += 1;
      else await (client as PoolClient).query(`insert into effect values ('k', '')`);
      return undefined;
    };
    const calls = ['k1', 'k2'].map((key) => answer({ key, webhookId: 'dlv_1' }, store, handle));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);

    expect(statuses.filter((status) => status === 204)).toHaveLength(1);
    const { rows } = await database.pool.query('select 1 from effect');
    expect(effects + rows.length).toBe(1);
  });
});

describe('the memory store', () => {
  it('lets another run start when the lock of a handler that never ended has expired', async () => {
    let nowMs = 0;
    const store = createMemoryStore({ lockMs: 1000, clock: () => nowMs });
    const started = deferred<void>();
    const stuck = deferred<Answer>();
    const first = answer({ key: 'k' }, store, () => {
      started.resolve();
      return stuck.promise;
    });
    await started.promise;

    nowMs = 999;
    expect((await answer({ key: 'k' }, store, async () => undefined)).status).toBe(409);
    nowMs = 1000;
    expect((await answer({ key: 'k' }, store, async () => ({ status: 200, body: 'second' }))).body).toBe(
      'second',
    );

    stuck.resolve({ status: 200, body: 'first, too late' });
    expect((await first).status).toBe(409);
    expect((await answer({ key: 'k' }, store, async () => undefined)).body).toBe('second');
  });
});

describe('the PostgreSQL store', () => {
  beforeEach(() => database.pool.query('truncate duepost_receipt, effect'));

  async function effects(): Promise<string[]> {
    const { rows } = await database.pool.query<{ key: string }>('select key from effect order by key');
    return rows.map(({ key }) => key);
  }

  const writeEffect: Handle<PoolClient> = async ({ key }, client) => {
    await client.query('insert into effect values ($1, $2)', [key, '']);
    return { status: 200, body: 'written' };
  };

  it('commits the effect and the record together', async () => {
    const store = createPostgresStore<PoolClient>(database.pool);
    await answer({ key: 'k' }, store, async (call, client) => {
      const answered = await writeEffect(call, client);
      expect(await effects()).toEqual([]);
      return answered;
    });
    expect(await effects()).toEqual(['k']);
    const { rows } = await database.pool.query('select key, delivery_id, status, body from duepost_receipt');
    expect(rows).toEqual([{ key: 'k', delivery_id: 'dlv_k', status: 200, body: 'written' }]);
  });

  it.each<[string, Handle<PoolClient>]>([
    [
      'throws',
      async (call, client) => {
        await writeEffect(call, client);
        throw new Error('after the effect');
      },
    ],
    [
      'answers 503',
      async (call, client) => {
        await writeEffect(call, client);
        return { status: 503 };
      },
    ],
    [
      'swallows an error of its own transaction',
      async (call, client) => {
        await writeEffect(call, client);
        await client.query('select 1 / 0').catch(() => {});
        return { status: 200 };
      },
    ],
    [
      'loses its connection before the record',
      async (call, client) => {
        await writeEffect(call, client);
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
        return { status: 200 };
      },
    ],
  ])('keeps nothing of a handler that %s, and the next attempt has one effect', async (_name, handle) => {
    const store = createPostgresStore<PoolClient>(database.pool);
    expect((await answer({ key: 'k' }, store, handle)).status).toBeGreaterThanOrEqual(500);
    expect(await effects()).toEqual([]);

    // The server may need a moment to notice that a lost connection has let go of the key.
    const next = await until('the key to be free', async () => {
      const given = await answer({ key: 'k', attempt: 2 }, store, writeEffect);
      return given.status !== 409 && given;
    });
    expect(next.body).toBe('written');
    expect((await answer({ key: 'k', attempt: 3 }, store, writeEffect)).body).toBe('written');
    expect(await effects()).toEqual(['k']);
  });

  it('keeps one effect per key under 400 calls of 40 keys through two stores', async () => {
    const stores = [1, 2].map(() => createPostgresStore<PoolClient>(database.pool));
    const keys = Array.from({ length: 40 }, (_, n) => `k-${String(n).padStart(2, '0')}`);
    const calls = Array.from({ length: 400 }, (_, n) => {
      const store = stores[n % 2] as Store<PoolClient>;
      return answer({ key: keys[n % 40] }, store, writeEffect);
    });
    const statuses = new Set((await Promise.all(calls)).map(({ status }) => status));

    statuses.delete(409);
    expect([...statuses]).toEqual([200]);
    expect(await effects()).toEqual(keys);
  });

  it('gives every connection back', async () => {
    const store = createPostgresStore<PoolClient>(database.pool);
    for (const key of ['a', 'a', 'b']) await answer({ key }, store, writeEffect);
    await answer({ key: 'c' }, store, async () => ({ status: 503 }));
    await answer({ key: 'b', body: 'other' }, store, writeEffect);
    expect(database.pool.idleCount).toBe(database.pool.totalCount);
    const { rows } = await database.pool.query(
      `select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    );
    expect(rows).toEqual([]);
  });

  it('forgets what is older than asked, and only that', async () => {
    const store = createPostgresStore<PoolClient>(database.pool);
    for (const key of ['old', 'new']) await answer({ key }, store, writeEffect);
    await database.pool.query(
      `update duepost_receipt set recorded_at = now() - interval '91 days' where key = 'old'`,
    );
    expect(await forgetReceipts(database.pool, 90)).toBe(1);
    const { rows } = await database.pool.query('select key from duepost_receipt');
    expect(rows).toEqual([{ key: 'new' }]);
  });
});
