import { afterAll, beforeAll, expect, test } from 'vitest';
import { erasePayloads } from '../../src/pipeline/evidence/erase.ts';
import { endHold, placeHold } from '../../src/pipeline/evidence/hold.ts';
import { createDeliveryOperator } from '../../src/pipeline/operate/deliveries.ts';
import { moveDeliveries } from '../../src/store/moves.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { recordAnnouncements } from '../support/reminders.ts';
import { until } from '../support/until.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { linesOf, sealAll, verifyAll } from './support.ts';

const by = { actor: 'cli:ada', reason: 'Art. 17 GDPR, ticket 4711' };
let simulation: Simulation;

beforeAll(async () => {
  simulation = await openSimulation();
  await simulation.travelTo(new Date('2025-03-01T12:00:00Z'));
});

afterAll(() => simulation.close());

const bodyOf = async (deliveryId: string) =>
  (
    await simulation.pool.query(
      `select b.bytes, b.sha256, b.erased_at
         from body b
         join delivery d on coalesce(d.reminder_id, d.event_id) = b.source_id
        where d.delivery_id = $1`,
      [deliveryId],
    )
  ).rows[0] as { bytes: Buffer | null; sha256: Buffer; erased_at: Date | null };

test('takes the bytes and keeps the hash, with who did it and why in the trail', async () => {
  const { pool } = simulation;
  const ids = [
    await simulation.publish({ contractRef: 'pol-1' }),
    await simulation.remind({ contractRef: 'pol-1' }),
  ];
  for (const id of ids) await simulation.deliver(id);
  const before = await Promise.all(ids.map(bodyOf));
  await sealAll(pool);

  expect(await erasePayloads(pool, { contractRef: 'pol-1' }, by)).toBe(2);
  const after = await Promise.all(ids.map(bodyOf));
  expect(after.map((b) => b.bytes)).toEqual([null, null]);
  expect(after.map((b) => b.sha256)).toEqual(before.map((b) => b.sha256));
  const trail = await pool.query("select actor, detail from trail where event = 'erase'");
  expect(trail.rows).toEqual(
    ids.map(() => ({ actor: 'cli:ada', detail: JSON.stringify({ reason: by.reason }) })),
  );
  expect(linesOf(await verifyAll(pool))).toEqual([]);
  await sealAll(pool);
  expect(await verifyAll(pool)).toMatchObject({ ok: true, unsealed: 0 });
});

test('changes nothing the second time', async () => {
  const { pool } = simulation;
  expect(await erasePayloads(pool, { contractRef: 'pol-1' }, by)).toBe(0);
  expect((await pool.query("select from trail where event = 'erase'")).rows).toHaveLength(2);
});

test('refuses what has not ended, and erases nothing else of the contract either', async () => {
  const { pool } = simulation;
  const ended = await simulation.publish({ contractRef: 'pol-2' });
  await simulation.deliver(ended);
  const open = await simulation.publish({ contractRef: 'pol-2' });
  await expect(erasePayloads(pool, { contractRef: 'pol-2' }, by)).rejects.toMatchObject({
    code: 'transition_not_allowed',
    message: expect.stringContaining(`${open} is due`),
  });
  expect((await bodyOf(ended)).bytes).not.toBe(null);
  expect(await erasePayloads(pool, { deliveryId: ended }, by)).toBe(1);
});

test('refuses what is on hold until the hold is released', async () => {
  const { pool } = simulation;
  const id = await simulation.publish({ contractRef: 'pol-3' });
  await simulation.deliver(id);
  const hold = { contractRef: 'pol-3', actor: 'cli:ada', reason: 'lawsuit' };
  await placeHold(pool, hold);
  await expect(placeHold(pool, hold)).rejects.toMatchObject({ code: 'transition_not_allowed' });
  await expect(erasePayloads(pool, { deliveryId: id }, by)).rejects.toThrow(
    'contract pol-3 is on hold: lawsuit',
  );
  await endHold(pool, hold);
  await expect(endHold(pool, hold)).rejects.toMatchObject({ code: 'not_found' });
  expect(await erasePayloads(pool, { deliveryId: id }, by)).toBe(1);
});

test('refuses a contract and a delivery that it does not know', async () => {
  const { pool } = simulation;
  await expect(erasePayloads(pool, { contractRef: 'none' }, by)).rejects.toMatchObject({ code: 'not_found' });
  await expect(erasePayloads(pool, { deliveryId: 'dlv_x' }, by)).rejects.toMatchObject({ code: 'not_found' });
});

test('what was erased is not replayed', async () => {
  const { pool } = simulation;
  const id = await simulation.publish();
  await simulation.deliver(id, 404);
  await erasePayloads(pool, { deliveryId: id }, by);
  const operator = createDeliveryOperator({
    pool,
    publisher: { countReady: () => Promise.resolve(0) },
    announcer: recordAnnouncements().announcer,
    deliveriesQueue: 'none',
    timeoutMs: 1_000,
  });
  await expect(operator.retry(id, { ...by, force: false })).rejects.toMatchObject({
    code: 'transition_not_allowed',
    message: `the payload of ${id} was erased: there is nothing to send`,
  });
  expect(linesOf(await verifyAll(pool))).toEqual([]);
});

const PAGE = 500;

/** A contract with many events, all of which have ended. */
async function publishMany(contractRef: string, count: number): Promise<void> {
  const deliveryIds = await Promise.all(
    Array.from({ length: count }, () => simulation.publish({ contractRef })),
  );
  const { pool } = simulation;
  await moveDeliveries(pool, { move: 'cancel', deliveryIds, actor: 'test', trail: '{}', timeoutMs: 1_000 });
}

async function countErased(contractRef: string): Promise<number> {
  const { rows } = await simulation.pool.query<{ count: number }>(
    `select count(*)::int as count
       from event e
       join body b on b.source_id = e.event_id
      where e.contract_ref = $1
        and b.bytes is null`,
    [contractRef],
  );
  return rows[0]?.count ?? 0;
}

test('erases a large contract page by page; a hold that comes in between stops it, and it says how far it came', async () => {
  const { pool } = simulation;
  const contractRef = 'pol-large';
  await publishMany(contractRef, 2 * PAGE + 1);
  let erasing: Promise<unknown> | undefined;
  let placing: Promise<void> | undefined;
  await inTransaction(pool, async (db) => {
    const ofSecondPage = await db.query<{ event_id: string }>({
      text: 'select event_id from event where contract_ref = $1 order by event_id offset $2 limit 1',
      values: [contractRef, PAGE],
    });
    await db.query({
      text: 'select from body where source_id = $1 for update',
      values: [ofSecondPage.rows[0]?.event_id],
    });
    erasing = erasePayloads(pool, { contractRef }, by).catch((error: Error) => error.message);
    await until(
      'the first page to be erased for good',
      async () => (await countErased(contractRef)) === PAGE,
    );
    placing = placeHold(pool, { contractRef, actor: 'cli:ada', reason: 'lawsuit' });
    await until('the hold to wait for the second page', async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity
          where datname = current_database()
            and cardinality(pg_blocking_pids(pid)) > 0
            and query like '%insert into legal_hold%'`,
      );
      return rowCount === 1;
    });
  });
  await placing;
  expect(await erasing).toBe(
    `contract ${contractRef} is on hold: lawsuit; ${2 * PAGE} payloads were erased before that`,
  );
  expect(await countErased(contractRef)).toBe(2 * PAGE);

  await endHold(pool, { contractRef, actor: 'cli:ada', reason: 'settled' });
  expect(await erasePayloads(pool, { contractRef }, by)).toBe(1);
});
