import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCsvRows } from '../../src/cli/import/csv.ts';
import { type Line, readLines } from '../../src/cli/import/lines.ts';
import { type Row, readJsonRows } from '../../src/cli/import/rows.ts';
import { Refusal } from '../../src/domain/refusal.ts';

const MAX_BYTES = 10_000;
const COLUMNS = ['contract_ref', 'endpoint', 'renewal_date', 'notice_period', 'jurisdiction'];

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

function read(text: string, size = 7): Promise<Row[]> {
  return collect(readCsvRows(readLines(inPieces(Buffer.from(text), size), MAX_BYTES), {}));
}

const quote = (cell: string): string => `"${cell.replaceAll('"', '""')}"`;
/** A cell that is there: an empty one is left out. */
const cell = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).map((text) => `x${text}x`);
const row = fc.tuple(cell, cell, cell, cell, cell);

test('gives back every row that was written, however the bytes arrive', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { maxLength: 8 }),
      fc.constantFrom(',', ';', '\t'),
      fc.integer({ min: 1, max: 50 }),
      async (rows, delimiter, size) => {
        // A lone carriage return before a line feed cannot be told from a line end.
        const cells = rows.map((r) => r.map((c) => c.replaceAll('\r\n', '\n')));
        const text = [COLUMNS, ...cells.map((r) => r.map(quote))].map((r) => r.join(delimiter)).join('\r\n');
        const read_ = await read(text, size);
        expect(read_.map(({ content }) => content)).toEqual(
          cells.map((r) => Object.fromEntries(COLUMNS.map((column, i) => [column, r[i]]))),
        );
      },
    ),
    { numRuns: 200 },
  );
});

test('a stray quote costs its own row and no other', async () => {
  const good = Array.from({ length: 40 }, (_, i) => `c${i},e,2099-01-01,P1D,DE`);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(39), { minLength: 1, maxLength: 6 }),
      fc.constantFrom('bad,"e,2099-01-01,P1D,DE', 'bad,e"x,2099-01-01,P1D,DE', '"bad"x,e,2099-01-01,P1D,DE'),
      async (places, bad) => {
        const lines = good.flatMap((line, i) => (places.includes(i) ? [bad, line] : [line]));
        const rows = await read([COLUMNS.join(','), ...lines].join('\n'));
        const refused = rows.filter(({ content }) => content instanceof Refusal);
        expect(refused).toHaveLength(new Set(places).size);
        expect(rows).toHaveLength(lines.length);
        for (const { line } of refused) expect(lines[line - 2]).toBe(bad);
      },
    ),
  );
});

test('says where each row begins and ends', async () => {
  const rows = await read(
    'contract_ref,endpoint,renewal_date,notice_period,jurisdiction\n"a\nb",e,d,n,j\n\nc,e,d,n,j',
  );
  expect(rows.map(({ line }) => line)).toEqual([2, 5]);
  expect(rows.at(-1)?.endByte).toBe(86);
});

test('a line that is not UTF-8 or too long is refused alone', async () => {
  const bytes = Buffer.concat([
    Buffer.from('{"a":1}\n'),
    Buffer.from([0x7b, 0xe9, 0x7d, 0x0a]),
    Buffer.from(`"${'x'.repeat(MAX_BYTES)}"\n{"a":"\u2028"}\r\n`),
  ]);
  const rows = await collect(readJsonRows(readLines(inPieces(bytes, 1_000), MAX_BYTES)));
  expect(rows.map(({ content }) => (content instanceof Refusal ? 'refused' : content))).toEqual([
    { a: 1 },
    'refused',
    'refused',
    { a: '\u2028' },
  ]);
});

test('lines end at line feeds, in one piece or byte by byte', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'binary' })),
      fc.integer({ min: 1, max: 9 }),
      async (texts, size) => {
        const bare = texts.map((text) => text.replaceAll(/[\r\n\ufeff]/g, ''));
        const bytes = Buffer.from(bare.map((text) => `${text}\n`).join(''));
        const lines: Line[] = await collect(readLines(inPieces(bytes, size), MAX_BYTES));
        expect(lines.map(({ text }) => text)).toEqual(bare);
        expect(lines.at(-1)?.endByte ?? 0).toBe(bytes.length);
      },
    ),
  );
});
