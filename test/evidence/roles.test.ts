import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { erasePayloads } from '../../src/pipeline/evidence/erase.ts';
import { type Evidence, linesOf, makeEvidence, sealAll, verifyAll } from './support.ts';

let evidence: Evidence;
let application: pg.Pool;
const role = `app_${randomBytes(4).toString('hex')}`;

beforeAll(async () => {
  evidence = await makeEvidence();
  await evidence.pool.query(`create role ${role}`);
  await evidence.pool.query('select grant_to_application($1)', [role]);
  application = new pg.Pool({
    connectionString: evidence.product.database.url,
    options: `-c role=${role}`,
    max: 4,
  });
});

afterAll(async () => {
  await application.end();
  await evidence.pool.query(`drop owned by ${role}; drop role ${role}`);
  await evidence.close();
});

test.each(['trail', 'audit_record', 'operation', 'seal', 'seal_leaf'])(
  'the role of the product can add to %s and read it, and nothing else',
  async (table) => {
    await expect(application.query(`select from ${table} limit 1`)).resolves.toBeDefined();
    for (const statement of [
      `delete from ${table}`,
      `truncate ${table}`,
      `drop table ${table}`,
      `alter table ${table} disable trigger all`,
    ])
      await expect(application.query(statement)).rejects.toThrow(/permission denied|must be owner/);
  },
);

test('it has no way to a single partition', async () => {
  const partitions = await evidence.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'trail_event'::regclass",
  );
  for (const { name } of partitions.rows)
    await expect(application.query(`delete from ${name}`)).rejects.toThrow('permission denied');
});

test('it can do all that the product does: settle, seal, erase, check, make partitions', async () => {
  const pool = application;
  await pool.query("update delivery set at_risk_at = now() where delivery_id = 'none'");
  expect((await sealAll(pool)).length).toBeGreaterThan(0);
  expect(
    await erasePayloads(pool, { deliveryId: evidence.cancelled }, { actor: 'test', reason: 'a test' }),
  ).toBe(1);
  await pool.query('select ensure_partitions(3)');
  await pool.query("select drop_month('event', '1999-01', 10)");
  expect(linesOf(await verifyAll(pool))).toEqual([]);
});
