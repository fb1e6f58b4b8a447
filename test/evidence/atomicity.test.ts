import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { moveDeliveries } from '../../src/store/moves.ts';
import type { Pool } from '../../src/store/pool.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import type { Settlement } from '../../src/store/settlement.ts';
import { claimOne, settlementOf } from '../support/attempts.ts';
import { openDestination, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { dueNow } from '../support/reminders.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let pool: Pool;
let endpoint: { name: string; endpointId: string };

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  pool = product.parts.pool;
  ({ endpoint } = await product.endpoints.create(
    { name: 'notices', url: 'https://127.0.0.1/' },
    { actor: 'test' },
  ));
});

afterAll(() => product.close());

/** Lets every insert into a table fail while `work` runs. */
async function whileInsertsFail<T>(table: string, work: () => Promise<T>): Promise<T> {
  await pool.query(`
    create function fail() returns trigger language plpgsql as $$ begin raise exception 'no more of these'; end $$;
    create trigger failing before insert on ${table} for each row execute function fail()`);
  try {
    return await work();
  } finally {
    await pool.query(`drop trigger failing on ${table}; drop function fail`);
  }
}

/** Everything that the database says, as one text. */
async function everything(): Promise<string> {
  const tables = [
    'delivery',
    'reminder',
    'event',
    'body',
    'attempt',
    'trail',
    'audit_record',
    'endpoint',
    'operation',
    'notice',
    'unsealed',
  ];
  const rows = await Promise.all(
    tables.map(async (t) => (await pool.query(`select t::text from ${t} t order by 1`)).rows),
  );
  return JSON.stringify(rows);
}

const claim = (deliveryId: string) =>
  claimOne(pool, deliveryId, { leaseMs: 60_000, timeoutMs: 500, maxPerEndpoint: 10 });

const settle = (deliveryId: string, changes: Partial<Settlement>) =>
  settleAttempts(pool, [settlementOf(deliveryId, changes)], { holder: 'test', timeoutMs: 500 });

const move = (deliveryId: string, name: 'cancel' | 'replay' | 'miss') =>
  moveDeliveries(pool, { move: name, deliveryIds: [deliveryId], actor: 'test', trail: '{}', timeoutMs: 500 });

const publish = async (): Promise<string> => (await publishTo(product, endpoint)).deliveryId;

describe('what fails to be written down does not happen', () => {
  test.each<[string, string, () => Promise<() => Promise<unknown>>]>([
    ['accepting an event', 'trail', async () => publish],
    ['scheduling a reminder', 'trail', async () => () => product.reminders.schedule(dueNow())],
    ['scheduling a reminder', 'unsealed', async () => () => product.reminders.schedule(dueNow())],
    [
      'a claim',
      'attempt',
      async () => {
        const id = await publish();
        return () => claim(id);
      },
    ],
    [
      'an outcome',
      'trail',
      async () => {
        const id = await publish();
        await claim(id);
        return () => settle(id, {});
      },
    ],
    [
      'an outcome',
      'audit_record',
      async () => {
        const id = await publish();
        await claim(id);
        return () => settle(id, {});
      },
    ],
    [
      'an outcome',
      'unsealed',
      async () => {
        const id = await publish();
        await claim(id);
        return () => settle(id, {});
      },
    ],
    [
      'a retry',
      'trail',
      async () => {
        const id = await publish();
        await claim(id);
        return () =>
          settle(id, { decision: 'retry', outcome: 'retryable', endpointFailed: true, delayMs: 1_000 });
      },
    ],
    [
      'giving up',
      'notice',
      async () => {
        const id = await publish();
        await claim(id);
        return () =>
          settle(id, {
            decision: 'give_up',
            outcome: 'terminal',
            endpointFailed: true,
            deadReason: 'terminal_response',
          });
      },
    ],
    [
      'cancelling',
      'audit_record',
      async () => {
        const id = await publish();
        return () => move(id, 'cancel');
      },
    ],
    [
      'a replay',
      'trail',
      async () => {
        const id = await publish();
        await move(id, 'cancel');
        return () => move(id, 'replay');
      },
    ],
    // From here on nothing is accepted for the endpoint any more.
    [
      'disabling an endpoint that is gone',
      'operation',
      async () => {
        const id = await publish();
        await claim(id);
        return () =>
          settle(id, {
            decision: 'give_up',
            outcome: 'terminal',
            gone: true,
            endpointFailed: true,
            deadReason: 'endpoint_gone',
          });
      },
    ],
    [
      'pausing an endpoint',
      'operation',
      async () => {
        // The first one is disabled by now: it has answered that it is gone.
        const { endpoint: active } = await product.endpoints.create(
          { name: 'still-there', url: 'https://127.0.0.1/' },
          { actor: 'test' },
        );
        return () => product.endpoints.pause(active.endpointId, { actor: 'test', reason: 'x' });
      },
    ],
  ])('%s, when %s cannot be written', async (_, table, prepare) => {
    const act = await prepare();
    const before = await everything();
    await whileInsertsFail(table, () => expect(act()).rejects.toThrow('no more of these'));
    expect(await everything()).toBe(before);
    await act();
    expect(await everything()).not.toBe(before);
  });
});

test('calls no more often than the policy allows while outcomes cannot be written, and ends afterwards', async () => {
  const policy = { kind: 'schedule', retry_schedule: [0], max_attempts: 3 };
  const refusing = await openDestination(product, { answers: [403], policy });
  // An outcome is an update; the claim's own insert goes on working.
  await pool.query(`
    create function fail() returns trigger language plpgsql as $$ begin raise exception 'no outcome'; end $$;
    create trigger failing before update on attempt for each row execute function fail()`);
  await product.start(['worker', 'reconciler']);
  const { deliveryId } = await publishTo(product, refusing, { idempotencyKey: randomUUID() });
  await until('the first call', () => refusing.receiver.calls().length > 0);
  // Long enough for the claim to expire and for lapses to be tried.
  const failures = (): number =>
    product.recorded.lines.filter((l) => JSON.stringify(l.fields, serialize).includes('no outcome')).length;
  await until('some failures to write outcomes', () => failures() >= 3, 30_000);
  expect(refusing.receiver.calls().length).toBeLessThanOrEqual(3);

  await pool.query('drop trigger failing on attempt; drop function fail');
  await until('the dead letter', async () => {
    const found = await pool.query(
      "select from audit_record where delivery_id = $1 and state = 'dead_lettered'",
      [deliveryId],
    );
    return found.rows.length === 1;
  });
  expect(refusing.receiver.calls().length).toBeLessThanOrEqual(3);
  await refusing.receiver.close();
});

/** Errors keep their message to themselves when they are written as JSON. */
function serialize(_: string, value: unknown): unknown {
  return value instanceof Error ? { message: value.message } : value;
}
