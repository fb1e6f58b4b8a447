import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;

beforeEach(async () => {
  database = await openTestDatabase({ migrated: false });
});

afterEach(() => database.close());

function env(): Record<string, string> {
  return {
    DUEPOST_ENV: 'test',
    DUEPOST_DATABASE_URL: database.url,
    DUEPOST_AMQP_URL: process.env['DUEPOST_AMQP_URL'] ?? '',
  };
}

test.each([1, 2, 3])(
  'of five that migrate an empty database at once, one applies everything (round %i)',
  async () => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => runCli(['migrate', '--json'], env())));
    expect(runs.map((run) => [run.code, run.stderr])).toEqual(runs.map(() => [0, '']));
    const applied = runs.map((run) => run.json.applied.length).sort((a, b) => a - b);
    expect(applied.slice(0, 4)).toEqual([0, 0, 0, 0]);
    const status = await runCli(['migrate', 'status', '--json'], env());
    expect(status.code).toBe(0);
    expect(status.json).toMatchObject({ pending: [], unknown: [] });
    expect(status.json.applied).toHaveLength(applied[4] ?? 0);
  },
);

test('one that is killed in the middle leaves nothing, and the next applies everything', async () => {
  // A table of another transaction, which the migrations will run into and wait for.
  const other = await database.pool.connect();
  await other.query(
    'begin; set local idle_in_transaction_session_timeout = 0; create table delivery (x int)',
  );
  const { child, ended } = startCli(['migrate'], env());
  await until('the migration to wait', async () => {
    const { rows } = await database.pool.query(
      "select from pg_stat_activity where application_name = 'duepost migrate' and wait_event = 'transactionid' and datname = current_database()",
    );
    return rows.length > 0;
  });
  child.kill('SIGKILL');
  await ended;
  await other.query('rollback');
  other.release();

  const before = await runCli(['migrate', 'status', '--json'], env());
  expect(before.code).toBe(1);
  const again = await runCli(['migrate', '--json'], env());
  expect({ code: again.code, stderr: again.stderr }).toEqual({ code: 0, stderr: '' });
  const after = await runCli(['migrate', 'status', '--json'], env());
  expect(after.json).toEqual({ applied: again.json.applied, pending: [], unknown: [] });
});

test('a program that is older than the database changes nothing and starts nothing', async () => {
  await runCli(['migrate'], env());
  await database.pool.query("insert into migration (name, run_on) values ('9999_from_the_future', now())");
  for (const args of [['migrate'], ['start'], ['endpoint', 'list']]) {
    const { code, stderr } = await runCli(args, { ...env(), DUEPOST_HTTP_PORT: '0' });
    expect(code).toBe(1);
    expect(stderr).toContain('newer version of duepost (9999_from_the_future)');
  }
  const status = await runCli(['migrate', 'status', '--json'], env());
  expect(status.code).toBe(1);
  expect(status.json.unknown).toEqual(['9999_from_the_future']);
});
