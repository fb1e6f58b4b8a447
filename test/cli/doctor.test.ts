import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { issueCertificate } from '../egress/certificates.ts';
import { type Answer, runCli } from '../support/cli.ts';
import { openTestDatabase } from '../support/database.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
  await product.endpoints.create({ name: 'notices', url: 'http://127.0.0.1:59999/' }, { actor: 'test' });
});

afterAll(() => product.close());

async function examine(
  changes: Record<string, string> = {},
): Promise<{ code: number | null; wrong: Answer['checks'] }> {
  const { code, json } = await runCli(['doctor', '--json'], { ...product.env, ...changes });
  const wrong = json.checks.filter((finding) => finding.status === 'wrong');
  expect(json.healthy).toBe(wrong.length === 0);
  for (const { mend } of wrong) expect(mend).toBeTruthy();
  return { code, wrong };
}

test('finds nothing wrong with a good installation', async () => {
  expect(await examine()).toEqual({ code: 0, wrong: [] });
  const { code, stdout } = await runCli(['doctor'], product.env);
  expect(code).toBe(0);
  expect(stdout).toContain('nothing is wrong');
});

test.each<[string, Record<string, string>, [string, RegExp]]>([
  [
    'no database',
    { DUEPOST_DATABASE_URL: 'postgres://u:secret@127.0.0.1:1/x' },
    ['database', /ECONNREFUSED/],
  ],
  ['no broker', { DUEPOST_AMQP_URL: 'amqp://u:secret@127.0.0.1:1' }, ['broker', /ECONNREFUSED/]],
  ['a topology that is not there', { DUEPOST_BROKER_PREFIX: 'nobody' }, ['topology', /nobody\.v1.*missing/]],
  [
    'another master key',
    { DUEPOST_MASTER_KEY: randomBytes(32).toString('base64') },
    ['master key', /notices/],
  ],
  ['old time zone data', { DUEPOST_TZ_MINIMUM_VERSION: '2099a' }, ['time zone data', /older than 2099a/]],
  ['an unknown variable', { DUEPOST_PORT_HTTP: '1' }, ['configuration', /DUEPOST_PORT_HTTP/]],
])('finds %s', async (_, changes, [check, detail]) => {
  const { code, wrong } = await examine(changes);
  expect(code).toBe(1);
  expect(wrong).toMatchObject([{ check, detail: expect.stringMatching(detail) }]);
  expect(JSON.stringify(wrong)).not.toContain('secret@');
});

test('warns of a client certificate that expires soon', async () => {
  const { cert, key } = issueCertificate({ name: 'duepost', notAfter: new Date(Date.now() + 86_400_000) });
  const inner = { name: 'inner', url: 'https://127.0.0.1:59999/', tls: { certificate: cert, key } };
  const { endpoint } = await product.endpoints.create(inner, { actor: 'test' });
  const { code, json } = await runCli(['doctor', '--json'], product.env);
  await product.endpoints.remove(endpoint.endpointId, { actor: 'test' });
  expect([code, json.checks]).toMatchObject([
    0,
    expect.arrayContaining([
      expect.objectContaining({
        check: 'client certificates',
        status: 'warning',
        detail: expect.stringMatching(/inner on \d{4}-/),
      }),
    ]),
  ]);
});

test('warns of a small pool, which is enough to work', async () => {
  const { code, json } = await runCli(['doctor', '--json'], {
    ...product.env,
    DUEPOST_DATABASE_POOL_SIZE: '1',
  });
  expect(code).toBe(0);
  expect(json.checks).toContainEqual(
    expect.objectContaining({
      check: 'pool size',
      status: 'warning',
      mend: expect.stringContaining('_POOL_SIZE'),
    }),
  );
});

test('warns where the server has fewer connections free than a process with all roles takes', async () => {
  const { rows } = await product.parts.pool.query<{ free: number }>(
    `select current_setting('max_connections')::int - count(*)::int as free from pg_stat_activity`,
  );
  // Enough for one role.
  const poolSize = String(Math.min(100, Math.floor((rows[0]?.free ?? 0) / 2)));
  const { code, json } = await runCli(['doctor', '--json'], {
    ...product.env,
    DUEPOST_DATABASE_POOL_SIZE: poolSize,
  });
  expect(code).toBe(0);
  expect(json.checks).toContainEqual(
    expect.objectContaining({
      check: 'connections',
      status: 'warning',
      detail: expect.stringContaining(`up to ${4 * Number(poolSize) + 5}, ${poolSize} for each`),
      mend: expect.stringContaining('max_connections'),
    }),
  );
});

test('finds a port that is taken, unless it is taken by ourselves', async () => {
  const other = createServer((socket) => socket.end('SSH-2.0-nobody\r\n')).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  expect((await examine({ DUEPOST_HTTP_PORT: String(port) })).wrong).toMatchObject([
    {
      check: 'http port',
      detail: expect.stringContaining(`port ${port}`),
      mend: expect.stringContaining('DUEPOST_HTTP_PORT'),
    },
  ]);
  other.close();

  const stop = await product.start(['worker']);
  const ours = product.recorded.lines.findLast(({ event }) => event === 'http_listening')?.fields['port'];
  expect((await examine({ DUEPOST_HTTP_PORT: String(ours) })).wrong).toEqual([]);
  await stop();
});

test('says of a database that cannot be opened what is to be done about that', async () => {
  const url = new URL(product.database.url);
  const mendOf = async (changes: Partial<URL>) => {
    const changed = Object.assign(new URL(url), changes).href;
    return (await examine({ DUEPOST_DATABASE_URL: changed })).wrong.map(({ mend }) => mend);
  };
  expect(await mendOf({ pathname: '/nowhere' })).toEqual([expect.stringContaining('createdb')]);
  expect(await mendOf({ username: 'stranger' })).toEqual([expect.stringContaining('a user and password')]);
  expect(await mendOf({ port: '1' })).toEqual([expect.stringContaining('start PostgreSQL')]);
});

test('finds a broker that refuses the user', async () => {
  const url = new URL(product.env['DUEPOST_AMQP_URL'] ?? '');
  url.password = 'wrong';
  const { wrong } = await examine({ DUEPOST_AMQP_URL: url.href });
  expect(wrong).toMatchObject([{ check: 'broker', detail: expect.stringContaining('ACCESS_REFUSED') }]);
});

test('finds pending migrations and rights that a user lacks', async () => {
  const empty = await openTestDatabase({ migrated: false });
  expect((await examine({ DUEPOST_DATABASE_URL: empty.url })).wrong).toMatchObject([
    { check: 'migrations', mend: 'run duepost migrate' },
  ]);
  await empty.close();

  const role = `reader_${randomBytes(4).toString('hex')}`;
  const url = new URL(product.database.url);
  url.username = role;
  await product.parts.pool.query(
    `create role ${role} login; grant select on all tables in schema public to ${role}`,
  );
  const { wrong } = await examine({ DUEPOST_DATABASE_URL: url.href });
  await product.parts.pool.query(`drop owned by ${role}; drop role ${role}`);
  expect(wrong).toMatchObject([
    { check: 'database rights', detail: expect.stringContaining('update on delivery') },
  ]);
});
