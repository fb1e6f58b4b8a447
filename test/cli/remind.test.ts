import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliResult, runCli, startCli } from '../support/cli.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let folder: string;

beforeAll(async () => {
  product = await openTestProduct();
  folder = mkdtempSync(join(tmpdir(), 'renewals-'));
  await product.endpoints.create({ name: 'notices', url: 'http://127.0.0.1:59999/' }, { actor: 'test' });
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await product.close();
});

function duepost(...args: string[]): Promise<CliResult> {
  return runCli(args, product.env);
}

function fileOf(name: string, ...lines: string[]): string {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

async function countReminders(): Promise<number> {
  const { rows } = await product.parts.pool.query('select count(*)::int as count from reminder');
  return rows[0].count;
}

const ONE = ['remind', '--contract', 'pol-7781', '--endpoint', 'notices', '--renewal-date', '2060-03-31'];
const TERMS = ['--notice', 'P30D', '--jurisdiction', 'DE-BY'];

test('schedules one reminder, and the same contract and renewal date once', async () => {
  const planned = await duepost(...ONE, ...TERMS, '--dry-run', '--json');
  expect(planned.json).toMatchObject({ dry_run: true, due_at: '2060-03-01T08:00:00.000Z' });
  expect(await countReminders()).toBe(0);

  const first = await duepost(...ONE, ...TERMS, '--payload', '{"premium":1.10}', '--json');
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(first.json).toMatchObject({
    contract_ref: 'pol-7781',
    time_zone: 'Europe/Berlin',
    due_at: '2060-03-01T08:00:00.000Z',
    state: 'due',
    duplicate: false,
    idempotency_key: 'reminder:pol-7781:2060-03-31',
  });
  const again = await duepost(...ONE, ...TERMS, '--payload', '{"premium":1.10}', '--json');
  expect(again.json).toMatchObject({ reminder_id: first.json.reminder_id, duplicate: true });
  const other = await duepost(...ONE, ...TERMS, '--payload', '{"premium":2}');
  expect([other.code, other.stderr.includes('idempotency_key_reused')]).toEqual([1, true]);
});

const HEADER =
  'contract_ref,endpoint,renewal_date,notice_period,jurisdiction,time_zone,payload,idempotency_key';

test('tells people what a dry run of a file would do, and that it has not', async () => {
  const before = await countReminders();
  const path = fileOf('planned.csv', HEADER, 'pol-90,notices,2060-03-31,P30D,DE-BY,,,');
  const { code, stdout } = await duepost('remind', '--file', path, '--dry-run');
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^would be accepted +1$/m)]);
  expect(stdout).not.toMatch(/^accepted/m);
  expect(stdout).toMatch(/^nothing was stored$/m);
  expect(await countReminders()).toBe(before);
});

test('takes every good row of a CSV file, explains every other, and schedules nothing twice', async () => {
  const before = await countReminders();
  const path = fileOf(
    'renewals.csv',
    `\ufeff${HEADER}`,
    'pol-1,notices,2060-03-31,P30D,DE-BY,,,',
    'pol-2,notices,2060-02-30,P30D,DE-BY,,,',
    'pol-3,nowhere,2060-03-31,P30D,DE-BY,,,',
    '"pol 4, ""B""",notices,2060-03-31,P30D,GB-ENG,,"{""a"":\n 1.10}",own-key',
    '',
    'pol-5,notices,2060-03-31,P30D,US,,,',
    'pol-6,notices,"2060-03-31,P30D,FR,,,',
    'pol-7,notices,2060-03-31,P30D,FR,,,\r',
    'pol-8,notices,2060-03-31',
    'pol-9,notices,2060-03-31,P30D,FR,,{,',
    'pol-10,notices,2060-03-31,P30D,US,America/Denver,,',
  );
  const report = join(folder, 'refused.jsonl');
  const first = await duepost('remind', '--file', path, '--report', report, '--json');
  expect(first.code).toBe(1);
  expect(first.json).toMatchObject({ rows: 10, accepted: 4, duplicates: 0, refused: 6, stopped: false });
  expect(await countReminders()).toBe(before + 4);
  const refused = readFileSync(report, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(refused.map(({ line, contract_ref, code }) => [line, contract_ref, code])).toEqual([
    [3, 'pol-2', 'invalid_request'],
    [4, 'pol-3', 'not_found'],
    [8, 'pol-5', 'time_zone_required'],
    [9, null, 'invalid_request'],
    [11, null, 'invalid_request'],
    [12, null, 'invalid_request'],
  ]);
  expect(refused[0].errors).toMatchObject([{ path: '/renewal_date' }]);

  const again = await duepost('remind', '--file', path, '--json');
  expect(again.json).toMatchObject({ rows: 10, accepted: 0, duplicates: 4, refused: 6 });
  expect(again.stderr).toContain('line 8  pol-5  refused (time_zone_required)');
  expect(await countReminders()).toBe(before + 4);
  const { rows } = await product.parts.pool.query(
    "select contract_ref from reminder where idempotency_key = 'own-key'",
  );
  expect(rows).toEqual([{ contract_ref: 'pol 4, "B"' }]);
});

test('shows due dates and refusals of a file without storing anything', async () => {
  const before = await countReminders();
  const path = fileOf(
    'plan.jsonl',
    '{"contract_ref":"a","renewal_date":"2060-03-31"}',
    '{"contract_ref":"b","renewal_date":"2060-03-31","surprise":1}',
    'no json',
  );
  const defaults = ['--endpoint', 'notices', '--notice', 'P10B', '--jurisdiction', 'DE'];
  const { code, stdout } = await duepost('remind', '--file', path, '--dry-run', '--json', ...defaults);
  expect(code).toBe(1);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { line: 1, contract_ref: 'a', due_at: '2060-03-17T08:00:00.000Z', time_zone: 'Europe/Berlin' },
    { line: 2, contract_ref: 'b', code: 'invalid_request', errors: [{ path: '/surprise' }] },
    { line: 3, contract_ref: null, code: 'invalid_request' },
    { dry_run: true, rows: 3, accepted: 1, refused: 2 },
  ]);
  expect(await countReminders()).toBe(before);
});

test.each([
  ['contract_ref,endpont', 'did you mean endpoint?'],
  ['contract_ref,contract_ref', 'the column contract_ref is there twice'],
  ['contract_ref;endpoint;renewal_date;notice_period', 'the column jurisdiction is missing'],
])('refuses a file whose header is %s', async (header, text) => {
  const { code, stderr } = await duepost('remind', '--file', fileOf('header.csv', header, 'x;y'));
  expect(code).toBe(1);
  expect(stderr).toContain(text);
});

test('an import that is interrupted says so, and run again it takes the rest', async () => {
  const before = await countReminders();
  const rows = Array.from({ length: 3_000 }, (_, i) => `many-${i};notices;2060-03-31;P30D;DE-BY`);
  const path = fileOf('many.csv', 'contract_ref;endpoint;renewal_date;notice_period;jurisdiction', ...rows);
  const running = startCli(['remind', '--file', path, '--json'], product.env);
  await running.says('rows');
  running.child.kill('SIGINT');
  const stopped = await running.ended;
  expect(stopped.code).toBe(1);
  expect(stopped.stderr).toContain('run the same command again');
  expect(await countReminders()).toBe(before + stopped.json.accepted);

  const again = await duepost('remind', '--file', path, '--json');
  expect([again.code, again.json.refused]).toEqual([0, 0]);
  expect(again.json.duplicates).toBe(stopped.json.accepted);
  expect(await countReminders()).toBe(before + rows.length);
});
