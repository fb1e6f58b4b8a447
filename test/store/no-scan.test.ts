import { afterAll, beforeAll, expect, test } from 'vitest';
import { listEndpointsForTypes } from '../../src/store/endpoints.ts';
import { inTransaction, type Queryable } from '../../src/store/pool.ts';
import { claimSome } from '../support/attempts.ts';
import { type Destination, inMs, openDestination, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const WAITING = 3_000;
const ENDED = 1_000;
const MEASURED = 100;

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

async function publish(count: number, deliverAt?: Date): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => publishTo(product, destination, { deliverAt })));
}

/** By the receiver: counting rows would read the table itself. */
function untilDelivered(count: number): Promise<unknown> {
  return until(`${count} are delivered`, () => destination.receiver.effects().length === count);
}

/** How often each table with many rows was read from end to end, so far. */
async function countScans(): Promise<Record<string, number>> {
  const { rows } = await product.parts.pool.query<{ name: string; scans: number }>(
    `select relname as name, seq_scan::int as scans
       from pg_stat_user_tables
      where n_live_tup >= ${ENDED / 2}
      order by 1`,
  );
  return Object.fromEntries(rows.map(({ name, scans }) => [name, scans]));
}

/** How many rows of a table are read by what is done, in a transaction of its own. */
function countReads(table: string, work: (db: Queryable) => Promise<void>): Promise<number> {
  return inTransaction(product.parts.pool, async (db) => {
    const countSoFar = async (): Promise<number> => {
      const { rows } = await db.query<{ read: number }>({
        text: `select (coalesce(idx_tup_fetch, 0) + seq_tup_read)::int as read
                 from pg_stat_xact_user_tables where relname = $1`,
        values: [table],
      });
      return rows[0]?.read ?? 0;
    };
    const before = await countSoFar();
    await work(db);
    return (await countSoFar()) - before;
  });
}

test('accepting, delivering and retrying read no table from end to end', async () => {
  const stopFirst = await product.start(['worker']);
  await publish(WAITING, inMs(86_400_000));
  await publish(ENDED);
  await untilDelivered(ENDED);
  await stopFirst();
  // What a table has is told when it is asked for; how it was read, when a connection rests or ends.
  await product.parts.pool.query('analyze');

  const before = await countScans();
  expect(Object.keys(before)).toEqual(expect.arrayContaining(['delivery', 'event', 'body']));
  const stop = await product.start(['worker']);
  destination.receiver.setAnswers([503, 503, 200]);
  await publish(MEASURED);
  await untilDelivered(ENDED + MEASURED);
  await stop();
  expect(await countScans()).toEqual(before);
});

test('who wants an event is found without reading all endpoints', async () => {
  const { pool } = product.parts;
  await pool.query(
    `insert into endpoint (endpoint_id, name, url, event_types)
     select 'ep_' || lpad(g::text, 26, '0'), 'other-' || g, 'https://other.example/', array['other.' || g % 100]
       from generate_series(1, 5000) as g`,
  );
  await pool.query('vacuum analyze endpoint');
  const read = await countReads('endpoint', async (db) => {
    const { endpoints } = await listEndpointsForTypes(db, ['other.7', 'other.*']);
    expect(endpoints).toHaveLength(50);
  });
  expect(read).toBeLessThan(100);
});

test('what falls due all at once is claimed row by row, although statistics know nothing of it yet', async () => {
  const { pool } = product.parts;
  await pool.query('alter table delivery set (autovacuum_enabled = false)');
  await pool.query('analyze delivery');
  const { rows } = await pool.query<{ delivery_id: string }>(
    `update delivery set due_at = now() - interval '1 second' where state = 'due' returning delivery_id`,
  );
  expect(rows.length).toBe(WAITING);
  const some = rows.slice(0, 25).map(({ delivery_id: deliveryId }) => ({ deliveryId, attempt: 1 }));
  const read = await countReads('delivery', async (db) => {
    const verdicts = await claimSome(db, some);
    expect([...verdicts.values()].map(({ verdict }) => verdict)).toEqual(some.map(() => 'claimed'));
  });
  expect(read).toBeLessThan(some.length * 10);
});
