import { afterAll, beforeAll, expect, test } from 'vitest';
import { reconcilePeriod } from '../../src/pipeline/evidence/completeness.ts';
import { openSimulation, type Simulation } from './simulation.ts';

const from = new Date('2025-03-01T00:00:00Z');
const to = new Date('2025-04-01T00:00:00Z');
let simulation: Simulation;

beforeAll(async () => {
  simulation = await openSimulation();
});

afterAll(() => simulation.close());

test('looks at each reminder that was due in the period, and at no other', async () => {
  const { pool } = simulation;
  await simulation.travelTo(new Date('2025-02-28T12:00:00Z'));
  await simulation.remind({ contractRef: 'pol-before' });
  await simulation.travelTo(new Date('2025-03-10T12:00:00Z'));
  const good = await simulation.remind({ contractRef: 'pol-good' });
  await simulation.deliver(good);
  const dead = await simulation.remind({ contractRef: 'pol-dead' });
  await simulation.deliver(dead, 404);
  expect(await reconcilePeriod(pool, { from, to }, undefined)).toMatchObject({
    complete: true,
    reminders: 2,
    outcomes: { delivered: 1, dead_lettered: 1 },
    notDelivered: [dead],
  });

  const open = await simulation.remind({ contractRef: 'pol-open' });
  const lost = await simulation.remind({ contractRef: 'pol-lost' });
  await pool.query('delete from delivery where delivery_id = $1', [lost]);
  await simulation.travelTo(new Date('2025-04-01T12:00:00Z'));
  await simulation.remind({ contractRef: 'pol-after' });

  const expected = ['pol-good', 'pol-dead', 'pol-open', 'pol-lost', 'pol-forgotten'];
  const result = await reconcilePeriod(
    pool,
    { from, to },
    expected.map((contractRef) => ({ contractRef, renewalDate: undefined })),
  );
  expect(result.complete).toBe(false);
  expect(result.reminders).toBe(4);
  const found = result.gaps.map((g) => [g.kind, g.contractRef, g.deliveryId]);
  expect(found).toHaveLength(3);
  expect(found).toEqual(
    expect.arrayContaining([
      ['missing', 'pol-open', open],
      ['missing', 'pol-lost', lost],
      ['missing', 'pol-forgotten', undefined],
    ]),
  );
});
