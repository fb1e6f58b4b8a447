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

test('the server soon finds out that a host is gone, and gives its locks to others', async () => {
  const setting = async (name: string): Promise<unknown> => {
    const { rows } = await database.pool.query(`select current_setting('${name}') as value`);
    return rows[0]?.value;
  };
  const names = ['tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count'];
  expect(await Promise.all(names.map(setting))).toEqual(['15', '5', '3']);
});
