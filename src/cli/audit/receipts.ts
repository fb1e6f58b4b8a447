import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import type { Receipt } from '../../domain/audit/bundle.ts';

/** How receivers name things, in our own export and elsewhere. */
const NAMES = {
  key: ['idempotency_key', 'idempotencyKey', 'key'],
  at: ['effect_at', 'recorded_at', 'first_at', 'firstAt', 'processed_at', 'created_at', 'at'],
  body: ['body_sha256', 'bodySha256'],
} as const;

/**
 * Reads what a receiver says of the keys that took effect: CSV with a header, JSON lines, or a JSON array. One key that
 * is there several times took effect that often.
 *
 * @throws Error for a file that cannot be read, or a line without a key
 */
export function readReceipts(file: string): Receipt[] {
  const receipts = new Map<string, Receipt>();
  for (const { row, text, place } of readRows(file)) {
    const key = pick(row, NAMES.key);
    if (key === undefined) throw new Error(`${file}, ${place}: there is no idempotency_key`);
    const before = receipts.get(key);
    receipts.set(key, {
      idempotency_key: key,
      effect_at: before?.effect_at ?? pick(row, NAMES.at) ?? null,
      body_sha256: before?.body_sha256 ?? pick(row, NAMES.body)?.toLowerCase() ?? null,
      effects: (before?.effects ?? 0) + 1,
      text: before === undefined ? text : `${before.text}\n${text}`,
    });
  }
  return [...receipts.values()];
}

type Row = Readonly<Record<string, unknown>>;

function readRows(file: string): { row: Row; text: string; place: string }[] {
  const content = readFileSync(file, 'utf8').trim();
  if (content.startsWith('[')) {
    return (JSON.parse(content) as Row[]).map((row, i) => ({
      row,
      text: JSON.stringify(row),
      place: `element ${i + 1}`,
    }));
  }
  if (content.startsWith('{')) {
    return content
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line, i) => ({ row: JSON.parse(line) as Row, text: line, place: `line ${i + 1}` }));
  }
  const rows = parse(content, { columns: true, trim: true, delimiter: [',', ';', '\t'] }) as Row[];
  return rows.map((row, i) => ({ row, text: JSON.stringify(row), place: `row ${i + 1}` }));
}

function pick(row: Row, names: readonly string[]): string | undefined {
  const value = names.map((name) => row[name]).find((v) => v !== undefined && v !== null && v !== '');
  if (value === undefined) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
