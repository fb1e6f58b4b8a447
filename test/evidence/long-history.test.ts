import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { bundleText } from '../../src/domain/audit/bundle.ts';
import { verifyBundle } from '../../src/domain/audit/verify-bundle.ts';
import { exportEvidence } from '../../src/pipeline/evidence/export.ts';
import { createSeal } from '../../src/pipeline/evidence/seal.ts';
import { findLastSeal, insertSeal } from '../../src/store/evidence/seals.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { checkSignature, sealAll, signer } from './support.ts';

let simulation: Simulation;
let delivery: string;

beforeAll(async () => {
  simulation = await openSimulation();
  await simulation.travelTo(new Date('2025-03-01T12:00:00Z'));
  await sealUpTo(333);
  delivery = await simulation.publish();
  await simulation.deliver(delivery);
  await sealAll(simulation.pool);
});

afterAll(() => simulation.close());

/** Goes on with the seals until there are so many. */
async function sealUpTo(size: number): Promise<void> {
  await inTransaction(simulation.pool, async (db) => {
    let last = await findLastSeal(db);
    while ((last?.number ?? 0) < size) {
      last = createSeal(
        last,
        {
          sealedAt: '2025-03-01T12:00:00.000000Z',
          hashes: [randomBytes(32)],
          parts: [{ kind: 'event', month: '2025-03', leaves: 1 }],
        },
        signer,
      );
      await insertSeal(db, last, []);
    }
  });
}

/** Exports the delivery, and counts the rows that the database sent for that. */
async function exportCounted(): Promise<{ file: Buffer; rows: number }> {
  const received = vi.spyOn(pg.Query.prototype as unknown as { handleDataRow(): void }, 'handleDataRow');
  const bundle = await exportEvidence({ deliveryId: delivery }, { pool: simulation.pool, actor: 'test' });
  const rows = received.mock.calls.length;
  received.mockRestore();
  return { file: Buffer.from(bundleText(bundle)), rows };
}

test('proves a delivery by a few rows, however many seals came after it', async () => {
  const rows: number[] = [];
  for (const size of [500, 1_000, 2_000, 4_000]) {
    await sealUpTo(size);
    const exported = await exportCounted();
    rows.push(exported.rows);
    expect(verifyBundle(exported.file, checkSignature)).toMatchObject({
      findings: [],
      head: { number: size },
    });
  }
  const more = rows.map((n, i) => n - (rows[i - 1] ?? n));

  expect(rows[0]).toBeLessThan(60);
  // One level more for each doubling: two nodes at most, with what makes up the one that is not complete.
  expect(Math.max(...more), `rows ${rows.join(', ')}`).toBeLessThanOrEqual(4);
});

test('makes the proofs when the transaction that read the rows has ended', async () => {
  const sent = vi.spyOn(pg.Client.prototype, 'query');
  await exportEvidence({ deliveryId: delivery }, { pool: simulation.pool, actor: 'test' });
  const statements = sent.mock.calls.map(([query]: unknown[]) =>
    typeof query === 'string' ? query : (query as { name?: string }).name,
  );
  sent.mockRestore();

  expect(statements.slice(statements.indexOf('commit'))).toEqual([
    'commit',
    'find_seals',
    'find_completed_subtrees',
  ]);
});

test('says which seal is missing, rather than to write a file that proves nothing', async () => {
  await simulation.pool.query('alter table seal disable trigger user');
  await simulation.pool.query('delete from seal where seal_number = 334');
  await expect(exportCounted()).rejects.toThrow('seal 334 is missing: run duepost audit verify');
});
