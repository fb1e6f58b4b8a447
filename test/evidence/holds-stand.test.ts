import { afterAll, beforeAll, expect, test } from 'vitest';
import { erasePayloads } from '../../src/pipeline/evidence/erase.ts';
import { placeHold } from '../../src/pipeline/evidence/hold.ts';
import { retain } from '../../src/pipeline/evidence/retention.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';
import { openSimulation, type Simulation } from './simulation.ts';

let simulation: Simulation;
const by = { actor: 'cli:ada', reason: 'lawsuit' };

beforeAll(async () => {
  simulation = await openSimulation();
});

afterAll(() => simulation.close());

/** How many payloads of a contract there are. */
async function countPayloads(contractRef: string): Promise<number> {
  const { rows } = await simulation.pool.query<{ count: number }>(
    `select count(*)::int as count
       from event e
       join body b on b.source_id = e.event_id
      where e.contract_ref = $1
        and b.bytes is not null`,
    [contractRef],
  );
  return rows[0]?.count ?? 0;
}

async function countWaiting(): Promise<number> {
  const { rowCount } = await simulation.pool.query(
    'select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0',
  );
  return rowCount ?? 0;
}

/**
 * Has `removing` wait for a row that another holds, after it has looked at holds; places a hold meanwhile.
 *
 * @returns what there was of the contract when the hold was answered, and in the end
 */
async function placeHoldBeside(
  removing: () => Promise<unknown>,
  of: { readonly contractRef: string; readonly row: string },
): Promise<{ answered: number; after: number }> {
  const { pool } = simulation;
  const { contractRef, row } = of;
  let removed: Promise<unknown> | undefined;
  let placed: Promise<number> | undefined;
  await inTransaction(pool, async (db) => {
    await db.query({ text: `${row} for update`, values: [contractRef] });
    removed = removing();
    await until('what removes to wait', async () => (await countWaiting()) === 1);
    let isAnswered = false;
    placed = placeHold(pool, { contractRef, ...by }).then(() => {
      isAnswered = true;
      return countPayloads(contractRef);
    });
    await until(
      'the hold to be answered, or to wait',
      async () => isAnswered || (await countWaiting()) === 2,
    );
    if (isAnswered) await placed;
  });
  await removed;
  return { answered: (await placed) ?? 0, after: await countPayloads(contractRef) };
}

test('an erasure under way when a hold is placed is through when that is answered', async () => {
  await simulation.travelTo(new Date('2025-01-10T12:00:00Z'));
  await simulation.deliver(await simulation.publish({ contractRef: 'pol-1' }));
  const { answered, after } = await placeHoldBeside(
    () => erasePayloads(simulation.pool, { contractRef: 'pol-1' }, by),
    {
      contractRef: 'pol-1',
      row: 'select from body where source_id in (select event_id from event where contract_ref = $1)',
    },
  );
  expect(after).toBe(answered);
});

test('so is a deletion by retention', async () => {
  await simulation.travelTo(new Date('2025-01-20T12:00:00Z'));
  await simulation.deliver(await simulation.publish({ contractRef: 'pol-2' }));
  await simulation.travelTo(new Date('2025-06-10T12:00:00Z'));
  const retention = { reminderYears: 1, eventDays: 60 };
  const { answered, after } = await placeHoldBeside(
    () => retain({ pool: simulation.pool, log: recordLog().log, retention, actor: 'retention' }),
    { contractRef: 'pol-2', row: 'select from delivery where contract_ref = $1' },
  );
  expect(after).toBe(answered);
});

test('a hold keeps the payload of an event that nobody wanted', async () => {
  const { pool } = simulation;
  await pool.query(
    `with unwanted as (
       insert into event (event_id, idempotency_key, content_sha256, type, contract_ref, answer)
       values ('evt_unwanted', 'unwanted', '\\x00', 'order.created', 'pol-3', '[]')
       returning event_id
     )
     insert into body (source_id, bytes, sha256, data_offset)
     select event_id, '{}', sha256('{}'), 0
       from unwanted`,
  );
  await placeHold(pool, { contractRef: 'pol-3', ...by });
  await expect(erasePayloads(pool, { contractRef: 'pol-3' }, by)).rejects.toThrow(
    'pol-3 is on hold: lawsuit',
  );
  expect(await countPayloads('pol-3')).toBe(1);
});
