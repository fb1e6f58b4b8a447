import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  boolArray,
  bytesArray,
  floatArray,
  instantArray,
  intArray,
  textArray,
} from '../../src/store/binary-arrays.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase({ migrated: false });
});

afterAll(() => database.close());

async function readBack(type: string, array: Buffer): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select e.value from unnest($1::${type}[]) with ordinality as e (value, place) order by e.place`,
    [array],
  );
  return rows.map((row: { value: unknown }) => row.value);
}

test.each([
  [
    'text',
    textArray(['', '{"a":"b\\\\"}', 'NULL', 'ü€😀', undefined]),
    ['', '{"a":"b\\\\"}', 'NULL', 'ü€😀', null],
  ],
  ['int', intArray([0, -1, 2_147_483_647, undefined]), [0, -1, 2_147_483_647, null]],
  ['float8', floatArray([0.1, -1e300, undefined]), [0.1, -1e300, null]],
  ['bool', boolArray([true, false, undefined]), [true, false, null]],
  [
    'timestamptz',
    instantArray([new Date('1969-12-31T23:59:59.999Z'), new Date('2027-03-31T09:00:00.001Z'), undefined]),
    [new Date('1969-12-31T23:59:59.999Z'), new Date('2027-03-31T09:00:00.001Z'), null],
  ],
  [
    'bytea',
    bytesArray([Buffer.from([0, 255, 92]), Buffer.alloc(0), undefined]),
    [Buffer.from([0, 255, 92]), Buffer.alloc(0), null],
  ],
  ['text', textArray([]), []],
])('the server reads %s as it was written', async (type, array, expected) => {
  expect(await readBack(type, array)).toEqual(expected);
});
