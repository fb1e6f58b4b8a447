import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Queryable } from '../../src/store/pool.ts';
import { listMissingPrivileges } from '../../src/store/watch/diagnosis.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';

const role = `p_${randomBytes(6).toString('hex')}`;
let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
  await database.pool.query(`create role ${role}`);
  await database.pool.query('select grant_to_application($1)', [role]);
});

afterAll(async () => {
  await database.pool.query(`drop owned by ${role}; drop role ${role}`);
  await database.close();
});

/** What the role lacks. */
async function missing(): Promise<string[]> {
  const client = await database.pool.connect();
  try {
    await client.query(`set role ${role}`);
    return (await listMissingPrivileges(client as Queryable)).sort();
  } finally {
    await client.query('reset role');
    client.release();
  }
}

test('the rights that the product is given are all that it needs', async () => {
  expect(await missing()).toEqual([]);
});

test.each([
  'insert on seal',
  'insert on seal_leaf',
  'update on unsealed',
  'delete on unsealed',
  'update on legal_hold',
  'insert on retention_month',
  'delete on delivery',
  'delete on reminder',
  'delete on event',
  'delete on body',
  'execute on drop_month(text, text, int)',
])('that a user lacks %s is told', async (right) => {
  const [privilege, , ...object] = right.split(' ');
  const on = privilege === 'execute' ? `function ${object.join(' ')}` : object[0];
  await database.pool.query(`revoke ${privilege} on ${on} from ${role}`);
  expect(await missing()).toEqual([right]);
  await database.pool.query(`grant ${privilege} on ${on} to ${role}`);
});
