import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createId } from '../../src/domain/ids.ts';
import { FINAL_STATES, STATES, type State, TRANSITIONS } from '../../src/domain/state.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { ensurePartitions, migrate } from '../../src/store/migrate.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { recordLog } from '../support/recorded-log.ts';
import { dumpSchema } from '../support/schema-dump.ts';

let database: TestDatabase;
const idOf = (at: Date): string => createId('dlv', at.getTime(), Buffer.alloc(10));

beforeAll(async () => {
  database = await openTestDatabase();
});

afterAll(() => database.close());

test('is what docs/schema.sql says', async () => {
  // After a migration: npx vitest run test/store/schema.test.ts -u
  await expect(await dumpSchema(database.pool)).toMatchFileSnapshot(join(packageRoot, 'docs/schema.sql'));
});

/** The row of a delivery in that state, otherwise as plain as it can be. */
async function insertDelivery(state: State, n: number): Promise<string> {
  const deliveryId = `dlv_${String(n).padStart(26, '0')}`;
  const isOver = (FINAL_STATES as readonly State[]).includes(state);
  await database.pool.query(
    `insert into delivery (
       delivery_id, event_id, endpoint_id, idempotency_key, state, due_at, scheduled_at, ended_at, claim_expires_at,
       dead_reason, trail_length, trail_sha256)
     values ($1, 'evt', 'ep', 'key', $2, $3, now(), $4, $5, $6, 1, '')`,
    [
      deliveryId,
      state,
      isOver ? null : new Date(),
      isOver ? new Date() : null,
      state === 'in_flight' ? new Date() : null,
      state === 'dead_lettered' ? 'endpoint_gone' : null,
    ],
  );
  return deliveryId;
}

test('the database allows exactly the transitions of the state table', async () => {
  const allowed = new Set<string>(
    Object.values(TRANSITIONS).flatMap(({ from, to }) => from.map((state) => `${state} > ${to}`)),
  );
  const seen = new Set<string>();
  let n = 0;
  for (const from of STATES) {
    for (const to of STATES) {
      if (from === to) continue;
      n += 1;
      const deliveryId = await insertDelivery(from, n);
      const isOver = (FINAL_STATES as readonly State[]).includes(to);
      const moving = database.pool.query(
        `update delivery
            set state = $2, due_at = $3, ended_at = $4, claim_expires_at = $5, dead_reason = $6
          where delivery_id = $1`,
        [
          deliveryId,
          to,
          isOver ? null : new Date(),
          isOver ? new Date() : null,
          to === 'in_flight' ? new Date() : null,
          to === 'dead_lettered' ? 'endpoint_gone' : null,
        ],
      );
      const refusal = await moving.then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (refusal === undefined) seen.add(`${from} > ${to}`);
      else expect(refusal).toBe(`delivery ${deliveryId} may not go from ${from} to ${to}`);
    }
  }
  expect([...seen].sort()).toEqual([...allowed].sort());
});

test.each([
  ['a state nobody knows', "state = 'lost'", 'may not go from due to lost'],
  ['a claim without an end', "state = 'in_flight'", 'delivery_claim'],
  [
    'an end without its reason',
    "state = 'dead_lettered', due_at = null, ended_at = now()",
    'delivery_dead_reason',
  ],
  ['an end that is still due', "state = 'cancelled', ended_at = now()", 'delivery_due_until_ended'],
  ['two sources', "reminder_id = 'rem'", 'delivery_one_source'],
  ['an attempt before its budget', 'attempt_base = 2', 'delivery_attempt'],
])('a delivery with %s cannot be stored', async (_, change, reason) => {
  const deliveryId = await insertDelivery('due', Math.floor(Math.random() * 1e9) + 1_000);
  await expect(
    database.pool.query(`update delivery set ${change} where delivery_id = $1`, [deliveryId]),
  ).rejects.toThrow(new RegExp(reason));
});

const ENTRY = `insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
  values ('event', $1, 1, now(), 'schedule', 'test', '{}', '')`;
const RECORD = `insert into audit_record (
    kind, delivery_id, cycle, endpoint_id, endpoint_url, state, idempotency_key, body_sha256, attempts, finished_at,
    due_at, revision, in_time, actor, trail_length, trail_sha256)
  values ('event', $1, 1, 'ep', 'https://x', 'delivered', 'k', '', 1, now(), now(), 1, true, 'test', 1, '')`;
const OPERATION = `insert into operation (subject_id, event, actor, detail) values ($1, 'endpoint.paused', 'test', '{}')`;

test.each([
  ['trail', ENTRY, "actor = 'somebody else'"],
  ['audit_record', RECORD, 'attempts = 0'],
  ['operation', OPERATION, "actor = 'somebody else'"],
])('%s is append-only', async (table, insert, change) => {
  await database.pool.query(insert, [idOf(new Date())]);
  await expect(database.pool.query(`update ${table} set ${change}`)).rejects.toThrow(/is append-only/);
  await expect(database.pool.query(`delete from ${table}`)).rejects.toThrow(/is append-only/);
});

test('evidence of this month and of the three ahead has its partition, and making them again is harmless', async () => {
  expect(await ensurePartitions(database.pool)).toBe(0);
  const { rows } = await database.pool.query(`
    select count(*)::int as n
      from pg_class
     where relname ~ '^(attempt|trail|audit_record)_(reminder|event)_\\d{4}_\\d{2}$' and relkind = 'r'`);
  expect(rows[0].n).toBe(3 * 2 * 4);
  const now = new Date();
  const ahead = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 4, 0, 23, 59));
  await database.pool.query(ENTRY, [idOf(ahead)]);
  const beyond = new Date(ahead.getTime() + 3_600_000);
  await expect(database.pool.query(ENTRY, [idOf(beyond)])).rejects.toThrow(/no partition of relation/);
});

test('migrations that start twice at once are applied once', async () => {
  const fresh = await openTestDatabase({ migrated: false });
  const config = { url: fresh.url, poolSize: 1, statementTimeoutMs: 10_000 };
  const applied = await Promise.all([1, 2, 3].map(() => migrate(config, recordLog().log)));
  await fresh.close();
  const names = applied.flat();
  expect(new Set(names).size).toBe(names.length);
  expect(names).toContain('0007_feeding');
});
