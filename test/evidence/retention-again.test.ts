import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RetainedMonth, retain } from '../../src/pipeline/evidence/retention.ts';
import { recordLog } from '../support/recorded-log.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { linesOf, sealAll, verifyAll } from './support.ts';

/** More than are read at once. */
const OPERATIONS = 10_001;
const EVENT_DAYS = 60;
const DELIVERIES = 10;
const DAYS_BETWEEN = 4;

let simulation: Simulation;

beforeAll(async () => {
  simulation = await openSimulation();
});

afterAll(() => simulation.close());

async function retainNow(): Promise<RetainedMonth | undefined> {
  const months = await retain({
    pool: simulation.pool,
    log: recordLog().log,
    retention: { reminderYears: 1, eventDays: EVENT_DAYS },
    actor: 'retention',
  });
  return months?.find((m) => m.month === '2025-01' && m.kind === 'event');
}

// Events of January that end one after the other, until the middle of March: from April on, each is older than it is
// kept on another day.
test('a month whose deliveries may go one by one is dropped a few times, and in the end as a whole', async () => {
  const { pool } = simulation;
  await simulation.travelTo(new Date('2025-01-10T12:00:00Z'));
  const published: string[] = [];
  for (let i = 0; i < DELIVERIES; i += 1) published.push(await simulation.publish());
  for (const [i, id] of published.entries()) {
    await simulation.travelTo(new Date(Date.UTC(2025, 1, 1 + i * DAYS_BETWEEN, 12)));
    await simulation.deliver(id);
    await sealAll(pool);
  }

  const results: (string | undefined)[] = [];
  const removed: number[] = [];
  for (let day = 1; day <= DELIVERIES * DAYS_BETWEEN + 10; day += 1) {
    await simulation.travelTo(new Date(Date.UTC(2025, 3, day, 18)));
    const month = await retainNow();
    results.push(month?.result);
    if (month !== undefined) removed.push(month.removed);
    await sealAll(pool);
  }
  expect(linesOf(await verifyAll(pool))).toEqual([]);
  expect(results.filter((r) => r === 'dropped')).toHaveLength(3);
  expect(results).toContain('waits');
  // None of it is told twice.
  expect(removed.reduce((a, b) => a + b)).toBe(DELIVERIES);
  const { rows } = await pool.query('select from trail where delivery_id = any($1)', [published]);
  expect(rows).toEqual([]);
});

test('what was dropped after very many operations is no finding', async () => {
  const { pool } = simulation;
  await simulation.travelTo(new Date('2025-05-20T12:00:00Z'));
  await simulation.deliver(await simulation.publish());
  await pool.query(
    `insert into operation (subject_id, event, actor, detail)
     select 'retention', 'retention.begun', 'test', '{}'
       from generate_series(1, $1::int)`,
    [OPERATIONS],
  );
  await sealAll(pool);
  await simulation.travelTo(new Date('2025-09-20T12:00:00Z'));
  await retainNow();
  await sealAll(pool);
  const report = await verifyAll(pool);
  expect(linesOf(report)).toEqual([]);
  expect(report.dropped.some((d) => d.month === '2025-05')).toBe(true);
});
