import { createReadStream } from 'node:fs';
import { parse } from 'csv-parse';
import { Refusal } from '../../domain/refusal.ts';
import type { Expected } from '../../domain/shadow/reconcile.ts';
import type { ShadowReport } from '../../pipeline/shadow/report.ts';
import { rowView } from '../../pipeline/shadow/view.ts';

/**
 * Reads the old system's list: a CSV file with a head, `contract_ref` and `due_at` (RFC 3339, with an offset), and
 * `delivery_id` where it is known; other columns are left alone. Throws a Refusal that names the line at fault.
 */
export async function readExpected(path: string): Promise<Expected[]> {
  const rows: Expected[] = [];
  const lines = createReadStream(path).pipe(
    parse({ bom: true, columns: true, trim: true, skip_empty_lines: true, info: true }),
  );
  for await (const entry of lines as AsyncIterable<{
    record: Record<string, string | undefined>;
    info: { lines: number };
  }>) {
    rows.push(toExpected(entry.record, entry.info.lines));
  }
  return rows;
}

const INSTANT = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/;

function toExpected(record: Record<string, string | undefined>, line: number): Expected {
  const { contract_ref, due_at, delivery_id } = record;
  const refuse = (what: string): Refusal =>
    new Refusal('invalid_request', `the old list, line ${line}: ${what}`);
  if (contract_ref === undefined || contract_ref === '') throw refuse('contract_ref is missing');
  if (due_at === undefined || due_at === '') throw refuse('due_at is missing');
  const dueAt = new Date(due_at);
  if (!INSTANT.test(due_at) || Number.isNaN(dueAt.getTime())) {
    throw refuse(
      `due_at ${JSON.stringify(due_at)} must be a time with an offset, such as 2027-03-01T09:00:00+01:00`,
    );
  }
  return {
    contractRef: contract_ref,
    dueAt,
    deliveryId: delivery_id === undefined || delivery_id === '' ? undefined : delivery_id,
    line,
  };
}

const COLUMNS = [
  'delivery_id',
  'reminder_id',
  'contract_ref',
  'jurisdiction',
  'state',
  'due_at',
  'recomputed_due_at',
  'expected_due_at',
  'expected_line',
  'first_attempt_at',
] as const;

/** A report as CSV (RFC 4180): a line per row, with what is the matter in the last two columns. */
export function formatCsv({ rows }: ShadowReport): string {
  const lines = rows.map((row) => {
    const view = rowView(row);
    return [
      ...COLUMNS.map((name) => view[name]),
      row.findings.length === 0 ? 'matched' : [...new Set(row.findings.map((f) => f.kind))].join(' '),
      row.findings.map((f) => f.note).join('; '),
    ]
      .map(formatField)
      .join(',');
  });
  return [[...COLUMNS, 'verdict', 'note'].join(','), ...lines, ''].join('\r\n');
}

/** Text that a spreadsheet would take for a formula is marked as text. */
function formatField(value: unknown): string {
  const text = typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
