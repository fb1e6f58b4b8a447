import { parse } from 'csv-parse/sync';
import { parseJson } from '../../domain/json.ts';
import { findNearest } from '../../domain/nearest.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import { ReminderBody } from '../../domain/requests/schemas.ts';
import type { Line } from './lines.ts';
import { type Row, unreadable } from './rows.ts';

/** Columns that a file may have: the members of a reminder. */
export const COLUMNS: readonly string[] = Object.keys(ReminderBody.properties);
const DELIMITERS = [',', ';', '\t'];
/** How many lines one row may take; a quote that nobody closes must not swallow the rest of the file. */
const MAX_LINES_OF_ROW = 1_000;

/**
 * Rows of CSV (RFC 4180) with a header line; the delimiter (comma, semicolon or tab) is told from it.
 *
 * A row whose quotes go wrong is refused alone: what it seemed to include is read anew, line by line.
 *
 * @throws Error for a header that cannot be used
 */
export async function* readCsvRows(
  lines: AsyncIterable<Line>,
  defaults: Readonly<Record<string, unknown>>,
): AsyncGenerator<Row> {
  const source = createSource(lines);
  try {
    const head = await source.next();
    if (head?.text === undefined) throw new Error('the file has no header line');
    const delimiter = findDelimiter(head.text);
    const columns = readHeader(head.text, delimiter, defaults);
    yield* readRows(source, { delimiter, columns });
  } finally {
    await source.close();
  }
}

interface Shape {
  readonly delimiter: string;
  readonly columns: readonly string[];
}

async function* readRows(source: Source, shape: Shape): AsyncGenerator<Row> {
  for (let first = await source.next(); first !== undefined; first = await source.next()) {
    const { number: line, endByte, text } = first;
    if (text === undefined) {
      yield { line, endByte, content: unreadable() };
      continue;
    }
    if (text.trim() === '') continue;
    const taken = await takeRow(source, first);
    const content = readCells(taken.map((each) => each.text).join('\n'), shape);
    if (content instanceof Refusal && taken.length > 1) source.giveBack(taken.slice(1));
    const last = content instanceof Refusal ? first : (taken.at(-1) ?? first);
    yield { line, endByte: last.endByte, content: content instanceof Refusal ? content : readRow(content) };
  }
}

interface Source {
  next(): Promise<Line | undefined>;
  giveBack(lines: readonly Line[]): void;
  close(): Promise<unknown>;
}

function createSource(lines: AsyncIterable<Line>): Source {
  const iterator = lines[Symbol.asyncIterator]();
  let again: Line[] = [];
  return {
    async next() {
      const known = again.shift();
      if (known !== undefined) return known;
      const { value, done } = await iterator.next();
      return done ? undefined : value;
    },
    giveBack(given) {
      again = [...given, ...again];
    },
    close: async () => iterator.return?.(),
  };
}

/** The lines up to the one on which every quote is closed. */
async function takeRow(source: Source, first: Line): Promise<Line[]> {
  const taken = [first];
  let isOpen = hasOpenQuote(first.text);
  while (isOpen && taken.length < MAX_LINES_OF_ROW) {
    const next = await source.next();
    if (next === undefined) break;
    taken.push(next);
    if (next.text === undefined) break;
    if (hasOpenQuote(next.text)) isOpen = false;
  }
  return taken;
}

/** An odd number of quotes: a quote within quotes is written twice. */
function hasOpenQuote(text = ''): boolean {
  return (text.split('"').length - 1) % 2 === 1;
}

type Cells = Record<string, string>;

function readCells(text: string, { delimiter, columns }: Shape): Cells | Refusal {
  const cells = split(text, delimiter);
  if (cells === undefined) return new Refusal('invalid_request', 'the quotes of this row do not match');
  if (cells.length !== columns.length) {
    return new Refusal(
      'invalid_request',
      `the row has ${cells.length} columns, the header has ${columns.length}`,
    );
  }
  return Object.fromEntries(columns.map((column, i) => [column, cells[i] ?? '']));
}

function split(text: string, delimiter: string): string[] | undefined {
  try {
    const rows = parse(text, { delimiter, trim: true, relax_column_count: true, record_delimiter: '\n' });
    return rows.length === 1 ? rows[0] : undefined;
  } catch {
    return undefined;
  }
}

/** An empty cell is a member left out; a payload is JSON. */
function readRow(cells: Cells): Record<string, unknown> | Refusal {
  const row: Record<string, unknown> = {};
  for (const [column, cell] of Object.entries(cells)) {
    if (cell === '') continue;
    if (column !== 'payload') row[column] = cell;
    else {
      const payload = readPayload(cell);
      if (payload instanceof Refusal) return payload;
      row[column] = payload.value;
    }
  }
  return row;
}

function readPayload(cell: string): { value: unknown } | Refusal {
  try {
    parseJson(cell);
    return { value: (parseJson(`{"payload":${cell}}`) as { payload: unknown }).payload };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return refuseField('/payload', 'payload must be JSON');
  }
}

function findDelimiter(head: string): string {
  const counts = DELIMITERS.map((delimiter) => head.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ',';
}

function readHeader(head: string, delimiter: string, defaults: Readonly<Record<string, unknown>>): string[] {
  const columns = split(head, delimiter) ?? [];
  const problems = columns.flatMap((column, i) => {
    if (columns.indexOf(column) < i) return [`the column ${column} is there twice`];
    if (COLUMNS.includes(column)) return [];
    const meant = findNearest(column, COLUMNS);
    return [
      `${JSON.stringify(column)} is no column of a reminder${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    ];
  });
  for (const name of ReminderBody.required) {
    if (!columns.includes(name) && defaults[name] === undefined)
      problems.push(`the column ${name} is missing`);
  }
  if (problems.length === 0) return columns;
  throw new Error([...problems, `columns may be ${COLUMNS.join(', ')}`].join('\n'));
}
