import Table from 'cli-table3';
import { escapeUnprintable } from '../runtime/scrub.ts';

/** Writes an answer to stdout: as `human` says, or as JSON, on one line if `compact`. */
export function writeAnswer(value: unknown, human: (() => string) | undefined, compact: boolean): void {
  const text = human?.() ?? JSON.stringify(value, undefined, compact ? 0 : 2);
  // Inside of JSON, where such characters can only stand in strings, \uXXXX means the same.
  const safe = text.split('\n').map(escapeUnprintable).join('\n');
  process.stdout.write(`${safe}\n`);
}

const NO_BORDERS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
};

/** Rows under a head, for people; what cannot be printed is escaped. */
export function formatTable(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  if (rows.length === 0) return 'none';
  return layOut([head.map((name) => name.toUpperCase()), ...rows.map((row) => row.map(formatCell))]);
}

/** Names and values, one pair a line; a member that is undefined is left out. */
export function formatFields(fields: Readonly<Record<string, unknown>>): string {
  return layOut(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, formatCell(value)]),
  );
}

function layOut(rows: string[][]): string {
  const table = new Table({
    chars: NO_BORDERS,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
  });
  table.push(...rows);
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** A value within a line: no line breaks, nothing that moves the cursor. */
export function formatCell(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-';
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(formatCell).join(', ');
  return escapeUnprintable(typeof value === 'string' ? value : JSON.stringify(value));
}
