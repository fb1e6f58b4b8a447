import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Bundle, bundleText, closeBundle } from '../../src/domain/audit/bundle.ts';
import { type CliResult, runCli } from '../support/cli.ts';
import { type Evidence, makeEvidence } from './support.ts';

let evidence: Evidence;
let folder: string;
let env: Record<string, string>;
const file = (name: string): string => join(folder, name);

beforeAll(async () => {
  evidence = await makeEvidence();
  folder = mkdtempSync(join(tmpdir(), 'evidence-'));
  const made = await runCli(['audit', 'keygen', '--out', file('sealing'), '--json']);
  expect(made.code).toBe(0);
  env = { ...evidence.product.env, DUEPOST_SEALING_KEY_FILE: file('sealing.pem') };
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await evidence.close();
});

const duepost = (...args: string[]): Promise<CliResult> => runCli(args, env);

test('makes a key pair of which only its owner can read the private half, and never over another', async () => {
  expect(statSync(file('sealing.pem')).mode & 0o777).toBe(0o600);
  expect((await duepost('audit', 'public-key')).stdout).toBe(readFileSync(file('sealing.pub.pem'), 'utf8'));
  expect((await duepost('audit', 'keygen', '--out', file('sealing'))).code).toBe(1);
});

test('seals what waits, once, and writes every seal to a file, once', async () => {
  const first = await duepost('audit', 'seal', '--file', file('seals.jsonl'), '--json');
  expect(first.json).toMatchObject({ published: 1, sealed: [{ seal: { number: 1 } }] });
  const second = await duepost('audit', 'seal', '--file', file('seals.jsonl'), '--json');
  expect(second.json).toMatchObject({ published: 0, sealed: [] });
  expect(readFileSync(file('seals.jsonl'), 'utf8').trim().split('\n')).toHaveLength(1);
});

test('exports a file that verifies without any server, by the public key alone', async () => {
  const exported = await duepost(
    'audit',
    'export',
    '--contract',
    'pol-7781',
    '--out',
    file('b.json'),
    '--html',
    file('b.html'),
  );
  expect(exported).toMatchObject({ code: 0, stdout: '' });

  const args = ['audit', 'verify', file('b.json'), '--public-key', file('sealing.pub.pem')];
  const verified = await runCli(args, { DUEPOST_ENV: 'production' });
  expect(verified.code).toBe(0);
  expect(verified.stdout).toMatch(/^SOUND\./);
  expect(verified.stdout).toContain('Contract pol-7781, renewal on');
  expect(verified.stdout).toContain('What it cannot prove:');
  expect((await runCli([...args, '--json'])).json).toMatchObject({
    ok: true,
    findings: [],
    head: { number: 1 },
  });
});

test('prints the same bundle to stdout, to the byte of what is proven', async () => {
  const printed = await duepost('audit', 'export', '--contract', 'pol-7781');
  writeFileSync(file('printed.json'), printed.stdout);
  expect(
    (await duepost('audit', 'verify', file('printed.json'), '--public-key', file('sealing.pub.pem'))).code,
  ).toBe(0);
});

test('ends with 1 and names what does not fit, when a byte was flipped', async () => {
  const text = readFileSync(file('b.json'), 'utf8');
  writeFileSync(file('flipped.json'), text.replace('"status":503', '"status":500'));
  const verified = await duepost(
    'audit',
    'verify',
    file('flipped.json'),
    '--public-key',
    file('sealing.pub.pem'),
  );
  expect(verified.code).toBe(1);
  expect(verified.stdout).toContain('NOT SOUND');
  expect(verified.stdout).toMatch(/attempt 1 of dlv_.*its status is 500, and trail entry 2 says 503/);
});

test('attaches what the receiver says of the key', async () => {
  const { receiver } = evidence.destination;
  const lines = receiver.effects().map((effect) => JSON.stringify(effect));
  writeFileSync(file('ledger.jsonl'), lines.join('\n'));
  await duepost(
    'audit',
    'export',
    '--delivery',
    evidence.reminder,
    '--receipts',
    file('ledger.jsonl'),
    '--out',
    file('r.json'),
  );
  const verified = await duepost('audit', 'verify', file('r.json'), '--public-key', file('sealing.pub.pem'));
  expect(verified.code).toBe(0);
  expect(verified.stdout).toMatch(
    /The receiver's record says that the key took effect once, at .*, for these bytes\./,
  );
});

test('makes a page for people that needs nothing else', () => {
  const page = readFileSync(file('b.html'), 'utf8');
  expect(page).toContain('Evidence for contract pol-7781');
  expect(page).toContain('RENEWAL DATE');
  expect(page).not.toMatch(/<script|src=|href=|url\(/);
});

test('checks the whole store, and names what somebody changed', async () => {
  const good = await duepost('audit', 'verify', '--published', file('seals.jsonl'));
  expect(good).toMatchObject({ code: 0 });
  expect(good.stdout).toMatch(
    /^Nothing was found changed: all rows of 5 deliveries fit together, and their seals \(1\)\.\nCompared with published seals: 1, up to seal 1\./,
  );
  expect(good.stdout).toContain('Not checked: the settings of endpoints and keys as they are now');

  const alone = await duepost('audit', 'verify');
  expect(alone.code).toBe(0);
  expect(alone.stdout).toMatch(
    /^Nothing was found changed: .*, compared with nothing outside this database\./,
  );
  expect(alone.stdout).toContain('only seals that were published show that (--published FILE)');
  expect((await duepost('audit', 'verify', '--json')).json).toMatchObject({
    ok: true,
    published: null,
    sealed_late: { found: 0, first: [] },
  });

  await evidence.pool.query('update attempt set status = 200 where delivery_id = $1 and attempt = 1', [
    evidence.reminder,
  ]);
  const bad = await duepost('audit', 'verify', '--json');
  await evidence.pool.query('update attempt set status = 503 where delivery_id = $1 and attempt = 1', [
    evidence.reminder,
  ]);
  expect(bad.code).toBe(1);
  expect(JSON.stringify(bad.json['findings'])).toContain(`attempt 1 of ${evidence.reminder}`);
});

test('without the key it says what could not be checked and what to give, and calls nothing changed', async () => {
  const { DUEPOST_SEALING_KEY_FILE: _, ...keyless } = env as Record<string, string>;
  const store = await runCli(['audit', 'verify'], keyless);
  expect(store).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^NOT CHECKED TO THE END: all rows of 5/),
  });
  expect(store.stdout).toMatch(/Not checked: signatures by the key [0-9a-f]{16}\. Give .*--public-key FILE/);
  expect(store.stdout).not.toContain('Not everything is as it was written');
  const own = await runCli(['audit', 'verify', '--public-key', file('sealing.pub.pem')], keyless);
  expect(own).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing was (found )?changed/) });

  const attempt = `update attempt set status = $1 where delivery_id = $2 and attempt = 1`;
  await evidence.pool.query(attempt, [200, evidence.reminder]);
  const bad = await runCli(['audit', 'verify'], keyless);
  await evidence.pool.query(attempt, [503, evidence.reminder]);
  expect(bad.stdout).toMatch(/^Not everything is as it was written:/);
  expect(bad.stdout).toContain('Not checked: signatures by the key');
});

test('a file that another key has signed is told as not checked, and not as changed', async () => {
  await runCli(['audit', 'keygen', '--out', file('other')]);
  const one = await runCli(['audit', 'verify', file('b.json'), '--public-key', file('other.pub.pem')]);
  expect(one).toMatchObject({ code: 1, stdout: expect.stringMatching(/^NOT CHECKED TO THE END: /) });
  expect(one.stdout).toContain('--public-key FILE');
});

test('compares a file with published seals, and vouches for nothing that differs or was not published', async () => {
  const check = (published: string): Promise<CliResult> =>
    runCli([
      'audit',
      'verify',
      file('b.json'),
      '--public-key',
      file('sealing.pub.pem'),
      '--published',
      published,
    ]);
  const same = await check(file('seals.jsonl'));
  expect(same).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^SOUND, and the same as published: seal 1\./),
  });

  const [line = ''] = readFileSync(file('seals.jsonl'), 'utf8').split('\n');
  writeFileSync(file('other.jsonl'), line.replace(/"sha256":"[0-9a-f]{64}"/, `"sha256":"${'0'.repeat(64)}"`));
  const other = await check(file('other.jsonl'));
  expect(other).toMatchObject({ code: 1, stdout: expect.stringMatching(/^NOT SOUND/) });
  expect(other.stdout).toContain('seal 1: it is not the one that was published');

  writeFileSync(file('none.jsonl'), '');
  expect(await check(file('none.jsonl'))).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /^NOT COMPARED TO THE END: it fits together, and nothing that was published vouches for seal 1\./,
    ),
  });
});

test('does not vouch for a file that nobody signed, be all of it sealed', async () => {
  const { sha256: _, signature: __, ...content } = JSON.parse(readFileSync(file('b.json'), 'utf8')) as Bundle;
  writeFileSync(file('unsigned.json'), bundleText(closeBundle(content, undefined)));
  const args = ['audit', 'verify', file('unsigned.json'), '--public-key', file('sealing.pub.pem')];
  expect(await runCli(args)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^NOT VOUCHED FOR: .*left out/),
  });
  expect((await runCli([...args, '--json'])).json).toMatchObject({
    ok: false,
    vouched_for: false,
    findings: [],
  });
});

test('lists what people did, and has in a file how the endpoint was set before', async () => {
  const { endpointId } = evidence.destination;
  const listed = await duepost('audit', 'operations', '--subject', endpointId, '--json');
  expect(listed.json.data).toMatchObject([
    { subject_id: endpointId, event: 'endpoint.created', actor: 'test' },
  ]);
  expect((await duepost('audit', 'operations', '--from', '2100-01-01', '--json')).json.data).toEqual([]);

  const { operations } = JSON.parse(readFileSync(file('b.json'), 'utf8')) as Bundle;
  expect(operations.map((o) => [o.operation.subject_id, o.operation.event])).toEqual([
    [endpointId, 'endpoint.created'],
  ]);
});

test('says whether a month is complete, against a list of who must have been reminded', async () => {
  const from = new Date(Date.now() - 86_400_000).toISOString();
  const to = new Date(Date.now() + 86_400_000).toISOString();
  expect((await duepost('audit', 'reconcile', '--from', from, '--to', to)).stdout).toMatch(
    /^Complete: each of 1 reminders/,
  );

  writeFileSync(file('contracts.csv'), 'contract_ref\npol-1234\n');
  const result = await duepost(
    'audit',
    'reconcile',
    '--from',
    from,
    '--to',
    to,
    '--expected',
    file('contracts.csv'),
    '--json',
  );
  expect(result.code).toBe(1);
  expect(result.json['gaps']).toMatchObject([
    { kind: 'missing', contract_ref: 'pol-1234', delivery_id: null },
    { kind: 'extra', contract_ref: 'pol-7781', delivery_id: evidence.reminder },
  ]);
});

test('holds, refuses to erase, releases and erases', async () => {
  const contract = ['--contract', 'pol-7781'];
  expect((await duepost('audit', 'hold', 'place', ...contract, '--reason', 'lawsuit')).code).toBe(0);
  const listed = await duepost('audit', 'hold', 'list', '--json');
  expect(listed.json).toMatchObject({ next_cursor: null, has_more: false });
  expect(listed.json.data).toMatchObject([{ contract_ref: 'pol-7781', reason: 'lawsuit' }]);
  const refused = await duepost('audit', 'erase', ...contract, '--reason', 'asked to');
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain('is on hold: lawsuit');
  await duepost('audit', 'hold', 'release', ...contract, '--reason', 'settled');
  expect((await duepost('audit', 'erase', ...contract, '--reason', 'asked to', '--json')).json).toEqual({
    erased: 2,
  });
  await duepost('audit', 'seal');
  expect((await duepost('audit', 'verify')).code).toBe(0);
  await duepost('audit', 'export', ...contract, '--out', file('e.json'));
  const verified = await duepost('audit', 'verify', file('e.json'), '--public-key', file('sealing.pub.pem'));
  expect(verified.stdout).toContain('their hash remains');
});

test('shows what retention would drop', async () => {
  expect((await duepost('audit', 'retain', '--dry-run', '--json')).json).toMatchObject({
    dry_run: true,
    months: [],
  });
});

test.each([
  [['export']],
  [['verify', 'x.json']],
  [['erase', '--reason', 'x']],
  [['reconcile', '--from', '2027-04-01', '--to', '2027-03-01']],
])('ends with 2 for wrong usage: audit %j', async (args) => {
  expect((await duepost('audit', ...args)).code).toBe(2);
});
