import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../src/pipeline/new-id.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { insertEvents, type NewEvent } from '../../src/store/sources.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
});

afterAll(() => database.close());

function eventWith(idempotencyKey: string): NewEvent {
  const bytes = Buffer.from('{}');
  const sha256 = createHash('sha256').update(bytes).digest();
  return {
    eventId: newId('evt'),
    idempotencyKey,
    contentSha256: sha256,
    type: 'order.created',
    answer: [],
    body: { bytes, sha256, dataOffset: 0 },
    deliveries: [],
    actor: 'test',
    trail: '{}',
  };
}

test('two batches with the same keys in different orders do not wait for each other in a circle', async () => {
  const { pool } = database;
  const batches: Promise<Map<string, unknown>>[] = [];
  // Somebody else has a key of both, so that each batch holds its first one and waits, and only then goes on.
  const rolledBack = inTransaction(pool, async (db) => {
    await insertEvents(db, [eventWith('m')]);
    for (const keys of [
      ['b', 'm', 'a'],
      ['a', 'm', 'b'],
    ])
      batches.push(insertEvents(pool, keys.map(eventWith)));
    await until('both batches wait', async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount === 2;
    });
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');

  const inserted = await Promise.all(batches);
  expect(inserted.reduce((sum, { size }) => sum + size, 0)).toBe(3);
});
