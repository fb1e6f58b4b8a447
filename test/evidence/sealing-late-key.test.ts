import { afterAll, beforeAll, expect, test } from 'vitest';
import { placeHold } from '../../src/pipeline/evidence/hold.ts';
import { retain } from '../../src/pipeline/evidence/retention.ts';
import { sealWaiting } from '../../src/pipeline/evidence/seal.ts';
import { recordLog } from '../support/recorded-log.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { linesOf, signer, verifyAll } from './support.ts';

/** As many as one seal takes. */
const MAX_LEAVES = 1_000;

let simulation: Simulation;
let dropped: string;
let kept: string;

// Nothing is sealed, and the first month is older than it is kept.
beforeAll(async () => {
  simulation = await openSimulation();
  const { pool } = simulation;
  await simulation.travelTo(new Date('2025-01-10T12:00:00Z'));
  dropped = await simulation.publish();
  kept = await simulation.publish({ contractRef: 'pol-held' });
  for (const id of [dropped, kept]) await simulation.deliver(id);
  await placeHold(pool, { contractRef: 'pol-held', actor: 'test', reason: 'lawsuit' });
  await simulation.travelTo(new Date('2025-06-10T12:00:00Z'));
  const retention = { reminderYears: 1, eventDays: 60 };
  await retain({ pool, log: recordLog().log, retention, actor: 'retention' });
});

afterAll(() => simulation.close());

async function waiting(): Promise<string[]> {
  const { rows } = await simulation.pool.query<{ subject_id: string }>(
    "select subject_id from unsealed where kind <> 'operation' order by 1",
  );
  return rows.map((r) => r.subject_id);
}

/** Seals in one go; how many seals that made, and of which subjects it says that they are missing. */
async function seal(): Promise<{ seals: number; missing: unknown[] }> {
  const { log, lines } = recordLog();
  const seals = await sealWaiting({ pool: simulation.pool, signer, log });
  const alarms = lines.filter((l) => l.event === 'unsealed_evidence_is_missing');
  return { seals: seals?.length ?? 0, missing: [...new Set(alarms.map((l) => l.fields['subject_id']))] };
}

test('what retention drops does not wait to be sealed any more; what it keeps does', async () => {
  expect(await waiting()).toEqual([kept]);
  expect(await seal()).toEqual({ seals: 1, missing: [] });
  expect(linesOf(await verifyAll(simulation.pool))).toEqual([]);
});

test('sealing goes on past what was dropped and still waits, without an alarm', async () => {
  const { pool } = simulation;
  // As versions have left it that dropped evidence alone.
  await pool.query(
    `insert into unsealed (kind, subject_id, entry)
     select 'event', $1, 1
       from generate_series(1, $2::int)`,
    [dropped, MAX_LEAVES],
  );
  const id = await simulation.publish();
  await simulation.deliver(id);
  expect(await seal()).toEqual({ seals: 1, missing: [] });
  expect(await waiting()).toEqual([]);
  const { rows } = await pool.query('select from seal_leaf where subject_id = $1', [id]);
  expect(rows).toHaveLength(1);
});

test('evidence that waits and is gone without having been dropped is an alarm, and sealing goes on', async () => {
  const { pool } = simulation;
  const lost = await simulation.publish();
  await pool.query("insert into unsealed (kind, subject_id, entry) values ('event', $1, 7)", [lost]);
  await simulation.deliver(lost);
  expect(await seal()).toEqual({ seals: 1, missing: [lost] });
});
