import { afterAll, beforeAll, expect, test } from 'vitest';
import { monthOfId } from '../../src/domain/audit/seal.ts';
import { type SealMemory, sealWaiting } from '../../src/pipeline/evidence/seal.ts';
import { statementOf } from '../../src/store/evidence/seals.ts';
import { listNotices } from '../../src/store/notices.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { recordLog } from '../support/recorded-log.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { linesOf, sealAll, signer, verifyAll } from './support.ts';

let simulation: Simulation;

beforeAll(async () => {
  simulation = await openSimulation();
  await simulation.travelTo(new Date('2025-03-01T12:00:00Z'));
});

afterAll(() => simulation.close());

/** How often each audit record is sealed. */
async function timesSealed(): Promise<number[]> {
  const found = await simulation.pool.query<{ times: number }>(
    `select (select count(*)::int from seal_leaf l where l.subject_id = a.delivery_id and l.cycle = a.cycle) as times
       from audit_record a`,
  );
  return found.rows.map((r) => r.times);
}

test('seals every record exactly once, although two processes seal while others settle', async () => {
  const { pool } = simulation;
  const options = { pool, signer, log: recordLog().log };
  let settling = true;
  const sealers = [1, 2].map(async () => {
    while (settling) await sealWaiting(options);
  });
  for (let round = 0; round < 10; round += 1) {
    const ids = await Promise.all(Array.from({ length: 20 }, () => simulation.publish()));
    await Promise.all(ids.map((id) => simulation.deliver(id)));
  }
  settling = false;
  await Promise.all(sealers);
  await sealAll(pool);

  expect(await timesSealed()).toEqual(Array.from({ length: 200 }, () => 1));
  expect(linesOf(await verifyAll(pool))).toEqual([]);
});

test('seals what is committed long after later things were sealed', async () => {
  const { pool } = simulation;
  const late = await simulation.publish();
  const client = await pool.connect();
  await client.query('begin');
  // Its queue number is taken now, and nobody can see it yet.
  await client.query(
    "insert into operation (subject_id, event, actor, detail) values ('late', 'x', 'test', '{}')",
  );
  await simulation.deliver(late);
  await sealAll(pool);
  await client.query('commit');
  client.release();
  await sealAll(pool);

  expect(linesOf(await verifyAll(pool))).toEqual([]);
  const { rows } = await pool.query("select from seal_leaf where kind = 'operation'");
  expect(rows).toHaveLength(1);
});

test('leaves everything in the queue when a seal cannot be stored', async () => {
  const { pool } = simulation;
  await simulation.deliver(await simulation.publish());
  const waiting = async (): Promise<number> => (await pool.query('select from unsealed')).rows.length;
  const before = await waiting();
  await pool.query('alter table seal add constraint no_more check (false) not valid');
  await expect(sealAll(pool)).rejects.toThrow('no_more');
  expect(await waiting()).toBe(before);
  await pool.query('alter table seal drop constraint no_more');
  await sealAll(pool);
  expect(await waiting()).toBe(0);
  expect(linesOf(await verifyAll(pool))).toEqual([]);
});

test('says in each seal how many leaves each month has, and announces it', async () => {
  const { pool } = simulation;
  await pool.query('delete from notice');
  const id = await simulation.publish();
  await simulation.deliver(id);
  const reminder = await simulation.remind();
  await simulation.deliver(reminder);
  const [seal] = (await sealWaiting({ pool, signer, log: recordLog().log })) ?? [];

  const statement = seal && statementOf(seal);
  expect(statement?.parts).toEqual([
    { kind: 'event', month: '2025-03', leaves: 1 },
    // When it is due, and how it ended.
    { kind: 'reminder', month: '2025-03', leaves: 2 },
  ]);
  expect(monthOfId(id)).toBe('2025-03');
  const notices = await inTransaction(pool, (db) => listNotices(db, { after: undefined, limit: 10 }));
  expect(notices.map((n) => [n.name, n.body['sha256']])).toEqual([
    ['audit.sealed', seal?.sha256.toString('hex')],
  ]);
});

test('seals a result that came after the end, and the erasure after it', async () => {
  const { pool } = simulation;
  const id = await simulation.publish();
  await simulation.deliver(id);
  await sealAll(pool);
  const appended = await pool.query(
    `with moved as (
       update delivery
          set trail_length = trail_length + 1,
              trail_sha256 = trail_hash(trail_sha256, trail_length + 1, now(), 'late_result', 'test', '{}')
        where delivery_id = $1
       returning delivery_id, trail_length, trail_sha256
     )
     insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
     select 'event', delivery_id, trail_length, now(), 'late_result', 'test', '{}', trail_sha256 from moved`,
    [id],
  );
  expect(appended.rowCount).toBe(1);
  const report = await verifyAll(pool);
  expect(report).toMatchObject({ ok: true, unsealed: 1 });
  await sealAll(pool);
  expect(await verifyAll(pool)).toMatchObject({ ok: true, unsealed: 0 });
});

/** As somebody does who owns the database: the last seal goes, and what it held waits again. */
async function cutLastSeal(): Promise<void> {
  const client = await simulation.pool.connect();
  await client.query(`
    set session_replication_role = replica;
    insert into unsealed (kind, subject_id, cycle, entry)
    select kind, subject_id, cycle, entry from seal_leaf where seal_number = (select max(seal_number) from seal);
    delete from seal_leaf where seal_number = (select max(seal_number) from seal);
    delete from seal where seal_number = (select max(seal_number) from seal);
    set session_replication_role = default`);
  client.release();
}

test('seals nothing on top of a history of which a seal that the process has seen is gone or another', async () => {
  const { pool } = simulation;
  const memory: SealMemory = {};
  const seal = (): ReturnType<typeof sealWaiting> =>
    sealWaiting({ pool, signer, log: recordLog().log, memory });
  await simulation.deliver(await simulation.publish());
  const [made] = (await seal()) ?? [];
  const state = (): Promise<unknown> =>
    pool
      .query('select (select count(*) from unsealed) as waiting, (select max(seal_number) from seal) as last')
      .then((result) => result.rows[0]);

  await cutLastSeal();
  const cut = await state();
  await expect(seal()).rejects.toThrow(`seal ${made?.number}, which this process has seen, is gone`);
  expect(await state()).toEqual(cut);

  // Whoever has seen nothing cannot know: it seals what it finds.
  await pool.query("update sim.clock set at = at + interval '1 minute'");
  await sealAll(pool);
  await simulation.deliver(await simulation.publish());
  await expect(seal()).rejects.toThrow('is another one now');
});
