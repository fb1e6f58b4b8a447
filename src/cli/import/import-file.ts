import { createReadStream, statSync } from 'node:fs';
import { Refusal } from '../../domain/refusal.ts';
import { readCsvRows } from './csv.ts';
import { readLines } from './lines.ts';
import { type Row, readJsonRows } from './rows.ts';

/** What became of one row. */
export interface RowResult<T> {
  readonly row: Row;
  readonly result: T | Refusal;
}

export interface ImportOptions<T> {
  readonly file: string;
  /** Members that rows may leave out. */
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly maxLineBytes: number;
  readonly signal: AbortSignal;
  /** Takes one row; rejects with a Refusal of this row, or with a fault, which ends the import. */
  readonly take: (row: Record<string, unknown>) => Promise<T>;
  /** Told of every row, in the order of the file. */
  readonly onResult: (result: RowResult<T>) => void;
}

/** How many rows are under way: enough for full batches, little for memory. */
const WINDOW = 1_000;

/** A fault of ours, at some row: nothing is wrong with the file. */
export class ImportStopped extends Error {}

/**
 * Takes every row of a CSV or JSON Lines file, a bounded number at a time.
 *
 * @throws ImportStopped for a fault; everything before the line it names was taken
 */
export async function importFile<T>(options: ImportOptions<T>): Promise<void> {
  type Settled = { readonly result: T | Refusal } | { readonly fault: unknown };
  const window: { readonly row: Row; readonly settled: Promise<Settled> }[] = [];

  async function finishOldest(): Promise<void> {
    const oldest = window.shift();
    if (oldest === undefined) return;
    const settled = await oldest.settled;
    if ('fault' in settled) {
      const why = settled.fault instanceof Error ? settled.fault.message : String(settled.fault);
      throw new ImportStopped(
        `stopped at line ${oldest.row.line}: ${why}\nrun the same command again: what is stored already is recognised`,
        { cause: settled.fault },
      );
    }
    options.onResult({ row: oldest.row, result: settled.result });
  }

  for await (const row of readRows(options)) {
    if (options.signal.aborted) break;
    const { content } = row;
    const taken = content instanceof Refusal ? Promise.reject(content) : take(content, options);
    const settled = taken.then(
      (result): Settled => ({ result }),
      (error: unknown): Settled => (error instanceof Refusal ? { result: error } : { fault: error }),
    );
    window.push({ row, settled });
    if (window.length >= WINDOW) await finishOldest();
  }
  while (window.length > 0) await finishOldest();
}

/** Async, so that what it throws at once is a rejection. */
async function take<T>(content: Record<string, unknown>, options: ImportOptions<T>): Promise<T> {
  return options.take({ ...options.defaults, ...content });
}

function readRows<T>({ file, defaults, maxLineBytes }: ImportOptions<T>): AsyncGenerator<Row> {
  const lines = readLines(createReadStream(file), maxLineBytes);
  return isCsv(file) ? readCsvRows(lines, defaults) : readJsonRows(lines);
}

/** Undefined: the name does not tell how the file is to be read. */
export function formatOf(file: string): 'csv' | 'jsonl' | undefined {
  if (/\.csv$/i.test(file)) return 'csv';
  return /\.(jsonl|ndjson)$/i.test(file) ? 'jsonl' : undefined;
}

function isCsv(file: string): boolean {
  return formatOf(file) === 'csv';
}

/** How large a file is, in bytes; throws when it cannot be looked at. */
export function sizeOf(file: string): number {
  return statSync(file).size;
}
