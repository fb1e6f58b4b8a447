import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatCsv, readExpected } from '../../src/cli/shadow/files.ts';
import { formatHtml } from '../../src/cli/shadow/html.ts';
import type { ReconciledRow } from '../../src/domain/shadow/reconcile.ts';
import type { ShadowReport } from '../../src/pipeline/shadow/report.ts';
import { faultsOfPage } from '../support/html.ts';

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'duepost-'));
});

afterAll(() => rmSync(dir, { recursive: true }));

function read(text: string): ReturnType<typeof readExpected> {
  const path = join(dir, 'old.csv');
  writeFileSync(path, text);
  return readExpected(path);
}

test('reads the old list whatever else it holds, with the lines as an editor counts them', async () => {
  const rows = await read(
    '\uFEFFid,contract_ref,due_at\r\n1,"pol,1",2026-12-22T09:00:00+01:00\r\n\r\n2,pol-2,2026-12-22T08:00:00Z\r\n',
  );
  const dueAt = new Date('2026-12-22T08:00:00Z');
  expect(rows).toEqual([
    { contractRef: 'pol,1', dueAt, deliveryId: undefined, line: 2 },
    { contractRef: 'pol-2', dueAt, deliveryId: undefined, line: 4 },
  ]);
});

test('names the line at fault: a time without an offset would mean the time zone of whoever reads it', async () => {
  await expect(read('contract_ref,due_at\npol-1,2026-12-22T09:00:00\n')).rejects.toThrow(
    'the old list, line 2: due_at "2026-12-22T09:00:00" must be a time with an offset',
  );
  await expect(read('contract,due_at\npol-1,2026-12-22T09:00:00Z\n')).rejects.toThrow(
    'line 2: contract_ref is missing',
  );
});

function reportOf(contractRef: string): ShadowReport {
  const at = new Date('2026-12-22T08:00:00Z');
  const row: ReconciledRow = {
    ours: undefined,
    expected: { contractRef, dueAt: at, deliveryId: undefined, line: 2 },
    findings: [{ kind: 'missing', note: 'there is no delivery for it' }],
  };
  return {
    from: new Date('2026-12-21T00:00:00Z'),
    to: new Date('2026-12-28T00:00:00Z'),
    generatedAt: at,
    endpoints: [{ endpointId: 'ep_1', name: '<b>notices</b>' }],
    hasExpected: true,
    rows: [row],
    coverage: { dates: ['2026-12-21'], jurisdictions: [] },
    passed: false,
    reasons: ['1 of 1 rows differ'],
  };
}

test('writes CSV that a spreadsheet takes as text', () => {
  const [head, line] = formatCsv(reportOf('=cmd("x"),1')).split('\r\n');
  expect(head).toMatch(/^delivery_id,.*,verdict,note$/);
  expect(line).toContain(`"'=cmd(""x""),1"`);
  expect(line).toMatch(/,missing,there is no delivery for it$/);
});

test('writes a page that loads nothing and shows text as text', () => {
  const page = formatHtml(reportOf('<script>alert(1)</script>'));
  expect(page).not.toMatch(/<script|<b>|https?:|src=|url\(/i);
  expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(page).toContain('not passed');
  expect(faultsOfPage(page)).toEqual([]);
});
