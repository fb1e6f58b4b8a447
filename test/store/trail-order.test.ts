import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { hastenDelivery } from '../../src/store/deliveries.ts';
import { moveDeliveries } from '../../src/store/moves.ts';
import { inTransaction, type Queryable } from '../../src/store/pool.ts';
import { lockDelivery } from '../../src/store/reschedules.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import { flagAtRisk } from '../../src/store/watch/at-risk.ts';
import { claimOne, settlementOf } from '../support/attempts.ts';
import { type Destination, inMs, openDestination, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;
let deliveryId: string;
const by = { actor: 'test', trail: '{}' };

beforeAll(async () => {
  product = await openTestProduct();
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

beforeEach(async () => {
  const times = { deliverAt: inMs(3_600_000), deadlineAt: inMs(7_200_000) };
  ({ deliveryId } = await publishTo(product, destination, times));
});

/** An entry of somebody else, at the instant at which it is written. */
async function appendEntry(db: Queryable): Promise<void> {
  await db.query({
    text: `
      with clock as materialized (
        select clock_timestamp() as at
      ), moved as (
        update delivery d
           set trail_length = d.trail_length + 1,
               trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, c.at, 'at_risk', 'another', '{}')
          from clock c
         where d.delivery_id = $1
        returning d.delivery_id, d.trail_length, d.trail_sha256, c.at
      )
      insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
      select 'event', delivery_id, trail_length, at, 'at_risk', 'another', '{}', trail_sha256
        from moved`,
    values: [deliveryId],
  });
}

/** Writes while another holds the delivery, who writes an entry of its own before it lets go. */
async function writeAfterAnother(write: (db: Queryable) => Promise<unknown>): Promise<void> {
  const { pool } = product.parts;
  let writing: Promise<unknown> | undefined;
  await inTransaction(pool, async (db) => {
    await lockDelivery(db, deliveryId);
    writing = write(pool);
    await until('the writer to wait', async () => {
      const { rowCount } = await pool.query(
        'select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0',
      );
      return rowCount === 1;
    });
    await appendEntry(db);
  });
  await writing;
}

/** The trail's events, in order, and whether the instants of its entries are in that order, too. */
async function readTrail(): Promise<{ events: string[]; inOrder: boolean }> {
  const { rows } = await product.parts.pool.query<{ event: string; in_order: boolean }>(
    `select event, at >= coalesce(lag(at) over (order by entry), '-infinity') as in_order
       from trail
      where delivery_id = $1
      order by entry`,
    [deliveryId],
  );
  return { events: rows.map((r) => r.event), inOrder: rows.every((r) => r.in_order) };
}

test('a cancellation that waited is told after what it waited for, and ended then', async () => {
  const request = { deliveryIds: [deliveryId], ...by, timeoutMs: 2_000 };
  await writeAfterAnother((db) => moveDeliveries(db, { move: 'cancel', ...request }));
  expect(await readTrail()).toEqual({ events: ['schedule', 'at_risk', 'cancel'], inOrder: true });
  const { rows } = await product.parts.pool.query(
    `select d.ended_at = t.at and a.finished_at = t.at as is_one_instant
       from delivery d
       join trail t on t.delivery_id = d.delivery_id and t.entry = d.trail_length
       join audit_record a on a.delivery_id = d.delivery_id
      where d.delivery_id = $1`,
    [deliveryId],
  );
  expect(rows).toEqual([{ is_one_instant: true }]);
});

test('so is a retry that somebody asked for', async () => {
  await writeAfterAnother((db) => hastenDelivery(db, { deliveryId, ...by }));
  expect(await readTrail()).toEqual({ events: ['schedule', 'at_risk', 'retry_now'], inOrder: true });
});

test('so is the result of an attempt', async () => {
  const { pool } = product.parts;
  await pool.query('update delivery set due_at = now() where delivery_id = $1', [deliveryId]);
  await claimOne(pool, deliveryId);
  const result = settlementOf(deliveryId);
  await writeAfterAnother((db) => settleAttempts(db, [result], { holder: 'test', timeoutMs: 10_000 }));
  expect(await readTrail()).toEqual({ events: ['schedule', 'at_risk', 'deliver'], inOrder: true });
});

test('so is a warning, which waits for nobody, but may have begun before', async () => {
  const { pool } = product.parts;
  await inTransaction(pool, async (db) => {
    await db.query({ text: 'select now()', values: [] });
    await appendEntry(pool);
    await flagAtRisk(db, { deliveries: [{ deliveryId, trail: '{}' }], actor: 'test' });
  });
  expect(await readTrail()).toEqual({ events: ['schedule', 'at_risk', 'at_risk'], inOrder: true });
});
