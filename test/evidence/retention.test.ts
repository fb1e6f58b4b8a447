import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Bundle, bundleText } from '../../src/domain/audit/bundle.ts';
import { verifyBundle } from '../../src/domain/audit/verify-bundle.ts';
import { erasePayloads } from '../../src/pipeline/evidence/erase.ts';
import { exportEvidence } from '../../src/pipeline/evidence/export.ts';
import { endHold, placeHold } from '../../src/pipeline/evidence/hold.ts';
import { type RetainedMonth, retain } from '../../src/pipeline/evidence/retention.ts';
import { recordLog } from '../support/recorded-log.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { checkSignature, linesOf, sealAll, signer, verifyAll } from './support.ts';

const MONTHS = 15;
const by = { actor: 'test', reason: 'a test' };

let simulation: Simulation;
/** Deliveries by month, and those with a fate of their own. */
const events: string[][] = [];
const reminders: string[][] = [];
let onHold: string;
let open: string;
let erased: string;
let exported: Bundle;
const findings: string[][] = [];
let last: RetainedMonth[] = [];

const monthAt = (n: number, day = 10): Date => new Date(Date.UTC(2025, n, day, 12));

async function retainNow(): Promise<RetainedMonth[]> {
  const months = await retain({
    pool: simulation.pool,
    log: recordLog().log,
    retention: { reminderYears: 1, eventDays: 60 },
    actor: 'retention',
  });
  return months ?? [];
}

// A year and a quarter, month by month: everything that the product does to evidence, in its order.
beforeAll(async () => {
  simulation = await openSimulation();
  const { pool } = simulation;
  for (let month = 0; month < MONTHS; month += 1) {
    await simulation.travelTo(monthAt(month));
    const ofMonth = [];
    for (const status of [200, 200, 410]) {
      const id = await simulation.publish();
      await simulation.deliver(id, status);
      ofMonth.push(id);
    }
    events.push(ofMonth);
    const reminder = await simulation.remind();
    await simulation.deliver(reminder);
    reminders.push([reminder]);
    if (month === 1) {
      onHold = await simulation.publish({ contractRef: 'pol-held' });
      await simulation.deliver(onHold);
      await placeHold(pool, { contractRef: 'pol-held', ...by });
      erased = await simulation.publish({ contractRef: 'pol-erased' });
      await simulation.deliver(erased);
      await sealAll(pool);
      await erasePayloads(pool, { contractRef: 'pol-erased' }, by);
      open = await simulation.publish({ dueAt: monthAt(13) });
      exported = await exportEvidence({ deliveryId: erased }, { pool, actor: 'test', signer });
    }
    await sealAll(pool);
    last = await retainNow();
    findings.push(linesOf(await verifyAll(pool)));
  }
}, 120_000);

afterAll(() => simulation.close());

async function partitionsOf(parent: string): Promise<string[]> {
  const found = await simulation.pool.query<{ name: string }>(
    'select relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass order by 1',
    [parent],
  );
  return found.rows.map((r) => r.name);
}

const there = async (table: string, ids: readonly string[]): Promise<number> =>
  (
    await simulation.pool.query(`select distinct delivery_id from ${table} where delivery_id = any($1)`, [
      ids,
    ])
  ).rows.length;

test('the trail verifies after every month', () => {
  expect(findings).toEqual(Array.from({ length: MONTHS }, () => []));
});

test('partitions of events and reminders go when they are older than they are kept', async () => {
  for (const parent of ['trail', 'attempt', 'audit_record', 'seal_leaf']) {
    const ofEvents = await partitionsOf(`${parent}_event`);
    // Of February there is what was kept; March and what follows is dropped up to the 60 days.
    expect(ofEvents[0]).toBe(`${parent}_event_2025_02`);
    expect(ofEvents[1]).toBe(`${parent}_event_2026_01`);
    expect((await partitionsOf(`${parent}_reminder`))[0]).toBe(`${parent}_reminder_2025_03`);
  }
});

test('nothing is left of what is old, and everything of what is not', async () => {
  const old = events.slice(0, 12).flat();
  const recent = events.slice(12).flat();
  for (const table of ['delivery', 'trail', 'attempt', 'audit_record']) {
    expect(await there(table, old)).toBe(0);
    expect(await there(table, recent)).toBe(recent.length);
    expect(await there(table, reminders.slice(0, 2).flat())).toBe(0);
    expect(await there(table, reminders.slice(2).flat())).toBe(MONTHS - 2);
  }
  const { pool } = simulation;
  const counts = await pool.query(
    `select (select count(*)::int from body) as bodies, (select count(*)::int from event) as events,
            (select count(*)::int from reminder) as reminders`,
  );
  expect(counts.rows[0]).toEqual({ bodies: 9 + 2 + 13, events: 9 + 2, reminders: 13 });
});

test('a delivery that has not ended stays, and can still be delivered', async () => {
  expect(last.find((m) => m.month === '2025-02' && m.kind === 'event')).toMatchObject({
    result: 'kept',
    kept: 2,
  });
  await simulation.deliver(open);
  await sealAll(simulation.pool);
  expect(linesOf(await verifyAll(simulation.pool))).toEqual([]);
});

test('evidence on hold stays as it was, and verifies in a bundle', async () => {
  const { pool } = simulation;
  const bundle = await exportEvidence({ contractRef: 'pol-held' }, { pool, actor: 'test', signer });
  const report = verifyBundle(Buffer.from(bundleText(bundle)), checkSignature);
  expect(report.findings).toEqual([]);
  expect(bundle.deliveries.map((d) => d.delivery.delivery_id)).toEqual([onHold]);
  expect(bundle.deliveries[0]?.seals).toHaveLength(1);
  expect(bundle.operations.map((o) => o.operation.event)).toEqual(['hold.placed']);
});

test('a bundle of what was erased and dropped since still verifies, and shows no payload', () => {
  const text = bundleText(exported);
  expect(verifyBundle(Buffer.from(text), checkSignature).findings).toEqual([]);
  const [delivery] = exported.deliveries;
  expect(delivery?.body.bytes).toBe(null);
  expect(delivery?.trail.at(-1)).toMatchObject({
    event: 'erase',
    actor: 'test',
    detail: '{"reason":"a test"}',
  });
  expect(delivery?.records[0]?.body_sha256).toBe(delivery?.body.sha256);
});

test('evidence on hold that somebody removes is found, although its month was dropped', async () => {
  const { pool } = simulation;
  const client = await pool.connect();
  try {
    await client.query('begin; set local session_replication_role = replica');
    for (const table of ['delivery', 'trail', 'attempt', 'audit_record'])
      await client.query(`delete from ${table} where delivery_id = $1`, [onHold]);
    await client.query('commit');
    const lines = linesOf(await verifyAll(pool));
    expect(lines.some((line) => line.startsWith(`delivery ${onHold}: its row is missing`))).toBe(true);
  } finally {
    client.release();
  }
});

test('when the hold ends, what it kept goes with the next run', async () => {
  await endHold(simulation.pool, { contractRef: 'pol-held', ...by });
  await simulation.travelTo(monthAt(MONTHS, 28));
  await simulation.travelTo(monthAt(MONTHS + 3));
  const months = await retainNow();
  expect(months.find((m) => m.month === '2025-02' && m.kind === 'event')).toMatchObject({
    result: 'dropped',
    kept: 0,
  });
  expect((await partitionsOf('trail_event'))[0]).toBe('trail_event_2026_05');
});
