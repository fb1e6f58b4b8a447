import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashEntry } from '../../src/domain/audit/chain.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
});

afterAll(() => database.close());

test('hashes entries as the database does, whatever they say', async () => {
  const text = fc.string({ unit: 'grapheme-composite' }).filter((s) => !s.includes('\0'));
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 32 }),
      fc.nat(),
      text,
      text,
      async (before, entry, actor, detail) => {
        const result = await database.pool.query<{ hash: Buffer }>(
          "select trail_hash($1, $2, '2027-03-01T09:10:11.000012+02', 'retry', $3, $4) as hash",
          [Buffer.from(before), entry, actor, detail],
        );
        const ours = hashEntry(before, {
          entry,
          at: '2027-03-01T07:10:11.000012Z',
          event: 'retry',
          actor,
          detail,
        });
        expect(result.rows[0]?.hash.toString('hex')).toBe(ours.toString('hex'));
      },
    ),
    { numRuns: 100 },
  );
});
