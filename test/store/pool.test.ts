import { afterAll, beforeAll, expect, test } from 'vitest';
import { isAlive, openPool } from '../../src/store/pool.ts';
import {
  databaseTarget,
  databaseThroughPort,
  openTestDatabase,
  type TestDatabase,
} from '../support/database.ts';
import { startProxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase({ migrated: false });
});

afterAll(() => database.close());

test('a database is alive as long as it answers', async () => {
  const proxy = await startProxy(databaseTarget());
  const url = databaseThroughPort(database.url, proxy.port);
  const pool = openPool({ url, poolSize: 1, statementTimeoutMs: 2_000 }, recordLog().log);
  expect(await isAlive(pool)).toBe(true);
  proxy.refuse(true);
  proxy.cut();
  expect(await isAlive(pool)).toBe(false);
  proxy.refuse(false);
  expect(await isAlive(pool)).toBe(true);
  await pool.end();
  await proxy.close();
});
