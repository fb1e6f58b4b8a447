import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { issueCertificate } from '../egress/certificates.ts';
import { type CliResult, runCli, startCli } from '../support/cli.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let receiver: PracticeReceiver;

beforeAll(async () => {
  product = await openTestProduct();
  receiver = await startPracticeReceiver();
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

function duepost(...args: string[]): Promise<CliResult> {
  return runCli(args, product.env);
}

async function json(...args: string[]): Promise<CliResult['json']> {
  const { code, stdout, stderr } = await duepost(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.endsWith('\n') && !stdout.slice(0, -1).includes('\n')).toBe(true);
  return JSON.parse(stdout);
}

test('an endpoint is made, shown, changed, paused, resumed and removed', async () => {
  const created = await json(
    'endpoint',
    'create',
    '--name',
    'notices',
    '--url',
    receiver.url,
    '--header',
    'X-Team: 7',
  );
  expect(created).toMatchObject({ name: 'notices', status: 'active', mode: 'live', event_types: ['*'] });
  expect(created.secret).toMatch(/^whsec_/);
  expect(await json('endpoint', 'list')).toMatchObject({ data: [{ name: 'notices' }], has_more: false });

  const args = ['endpoint', 'patch', 'notices', '--retry-schedule', '0,10,60,300', '--max-attempts', '4'];
  const patched = await json(...args, '--event-types', 'order.*,invoice.paid');
  expect(patched).toMatchObject({
    event_types: ['order.*', 'invoice.paid'],
    policy: { kind: 'schedule', retry_schedule: [0, 10, 60, 300], max_attempts: 4 },
  });
  expect(await json('endpoint', 'patch', 'notices', '--patch', '{"policy":null}')).toMatchObject({
    policy: null,
  });

  expect(await json('endpoint', 'pause', 'notices', '--reason', 'noon')).toMatchObject({
    status: 'paused',
    status_reason: 'noon',
  });
  expect(await json('endpoint', 'resume', created.endpoint_id)).toMatchObject({ status: 'active' });
  const rotated = await json('endpoint', 'rotate-secret', 'notices', '--overlap-hours', '1');
  expect(rotated.secret).toMatch(/^whsec_/);
  expect(rotated.secret).not.toBe(created.secret);
  const shown = await duepost('endpoint', 'show', 'notices', '--json');
  expect(shown.json).toMatchObject({ endpoint_id: created.endpoint_id });
  for (const secret of [created.secret, rotated.secret]) expect(shown.stdout).not.toContain(secret);

  expect(await json('endpoint', 'remove', 'notices')).toEqual({ removed: 'notices' });
  const gone = await duepost('endpoint', 'show', 'notices');
  expect([gone.code, gone.stdout, gone.stderr]).toEqual([
    1,
    '',
    'duepost: not_found: there is no endpoint notices\n',
  ]);
});

test('a refused endpoint names each member that is wrong', async () => {
  const { code, stderr } = await duepost(
    'endpoint',
    'create',
    '--name',
    'No Name',
    '--url',
    'ftp://x',
    '--mode',
    'dry',
  );
  expect(code).toBe(1);
  expect(stderr).toContain('/name');
  expect(stderr).toContain('/mode');
});

test('certificates are given as files, shown without the key, and taken away', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'duepost-'));
  const authority = issueCertificate({ name: 'House Authority', isAuthority: true });
  const client = issueCertificate({ name: 'duepost', issuer: authority });
  const [ca, certificate, key] = Object.entries({ ca: authority.cert, us: client.cert, key: client.key }).map(
    ([name, pem]) => {
      writeFileSync(join(dir, name), pem);
      return join(dir, name);
    },
  ) as [string, string, string];
  const base = ['--name', 'inner', '--url', 'https://127.0.0.1:59999/'];
  const tls = { ca: [{ subject: 'CN=House Authority' }], certificate: { subject: 'CN=duepost' } };
  const given = ['--ca', ca, '--client-certificate', certificate, '--client-key', key];
  expect(await json('endpoint', 'create', ...base, ...given)).toMatchObject({ tls });
  const shown = await duepost('endpoint', 'show', 'inner');
  expect(shown.stdout).toContain('CN=House Authority');
  expect(shown.stdout).not.toContain('BEGIN');
  expect(await json('endpoint', 'patch', 'inner', '--max-attempts', '3')).toMatchObject({ tls });
  expect(await json('endpoint', 'patch', 'inner', '--no-tls')).toMatchObject({ tls: null });
  expect(await json('endpoint', 'patch', 'inner', '--ca', ca)).toMatchObject({ tls: { certificate: null } });

  const both = await duepost('endpoint', 'patch', 'inner', '--no-tls', '--ca', ca);
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('not both')]);
  // Somebody gives the key itself instead of its file.
  const mistaken = await duepost('endpoint', 'patch', 'inner', '--client-key', client.key);
  expect([mistaken.code, mistaken.stderr]).toEqual([
    2,
    expect.stringContaining('--client-key names no file'),
  ]);
  expect(mistaken.stderr).not.toContain(client.key.split('\n')[1]);
  rmSync(dir, { recursive: true });
});

test('endpoint test sends a signed event to it', async () => {
  const { secret } = await json('endpoint', 'create', '--name', 'tested', '--url', receiver.url);
  receiver.setSecrets([secret]);
  const stop = await product.start(['worker', 'reconciler']);
  const { deliveries } = await json('endpoint', 'test', 'tested');
  const call = await until('the call', () => receiver.calls()[0]);
  expect(call).toMatchObject({ deliveryId: deliveries[0].delivery_id, verified: true, answered: 200 });
  await stop();
});

test('what could move the cursor or forge a line is escaped, in tables and in JSON', async () => {
  await json('endpoint', 'create', '--name', 'forged', '--url', receiver.url);
  const reason = 'a\r\n{"level":"info"}\u0085\u001b[2J\u2028\u202eb';
  const paused = await duepost('endpoint', 'pause', 'forged', '--reason', reason);
  const shown = await duepost('endpoint', 'show', 'forged', '--json');
  expect(shown.json.status_reason).toBe(reason);
  for (const { stdout } of [paused, shown, await duepost('endpoint', 'show', 'forged')]) {
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
    expect(stdout.split('\n').filter((line) => line.startsWith('{"level"'))).toEqual([]);
  }
  expect(paused.stdout).toContain('a\\u000d\\u000a{"level":"info"}\\u0085\\u001b[2J\\u2028\\u202eb');
});

test('a key is shown once, listed without itself, and ends when revoked', async () => {
  const created = await json(
    'key',
    'create',
    '--name',
    'ci',
    '--scopes',
    'publish,read',
    '--expires',
    '2099-01-01',
  );
  expect(created).toMatchObject({
    name: 'ci',
    scopes: ['publish', 'read'],
    expires_at: '2099-01-01T00:00:00.000Z',
  });
  expect(created.key).toMatch(/^dpk_/);
  const listed = await duepost('key', 'list');
  expect(listed.stdout).toContain(created.key_id);
  expect(listed.stdout).not.toContain(created.key);
  expect((await json('key', 'revoke', 'ci')).revoked_at).not.toBeNull();
  expect((await duepost('key', 'revoke', 'ci')).code).toBe(1);
});

test('reading only the beginning of an answer is no failure', async () => {
  const running = startCli(['config'], product.env);
  running.child.stdout?.destroy();
  const { code, stderr } = await running.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});
