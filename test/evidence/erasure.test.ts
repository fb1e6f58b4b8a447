import { afterAll, beforeAll, expect, test } from 'vitest';
import { erasePayloads } from '../../src/pipeline/evidence/erase.ts';
import { endHold, placeHold } from '../../src/pipeline/evidence/hold.ts';
import { createDeliveryOperator } from '../../src/pipeline/operate/deliveries.ts';
import { recordAnnouncements } from '../support/reminders.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { linesOf, sealAll, verifyAll } from './support.ts';

const by = { actor: 'cli:ada', reason: 'Art. 17 GDPR, ticket 4711' };
let simulation: Simulation;

beforeAll(async () => {
  simulation = await openSimulation();
  await simulation.travelTo(new Date('2025-03-01T12:00:00Z'));
});

afterAll(() => simulation.close());

const bodyOf = async (deliveryId: string) =>
  (
    await simulation.pool.query(
      `select b.bytes, b.sha256, b.erased_at
         from body b
         join delivery d on coalesce(d.reminder_id, d.event_id) = b.source_id
        where d.delivery_id = $1`,
      [deliveryId],
    )
  ).rows[0] as { bytes: Buffer | null; sha256: Buffer; erased_at: Date | null };

test('takes the bytes and keeps the hash, with who did it and why in the trail', async () => {
  const { pool } = simulation;
  const ids = [
    await simulation.publish({ contractRef: 'pol-1' }),
    await simulation.remind({ contractRef: 'pol-1' }),
  ];
  for (const id of ids) await simulation.deliver(id);
  const before = await Promise.all(ids.map(bodyOf));
  await sealAll(pool);

  expect(await erasePayloads(pool, { contractRef: 'pol-1' }, by)).toBe(2);
  const after = await Promise.all(ids.map(bodyOf));
  expect(after.map((b) => b.bytes)).toEqual([null, null]);
  expect(after.map((b) => b.sha256)).toEqual(before.map((b) => b.sha256));
  const trail = await pool.query("select actor, detail from trail where event = 'erase'");
  expect(trail.rows).toEqual(
    ids.map(() => ({ actor: 'cli:ada', detail: JSON.stringify({ reason: by.reason }) })),
  );
  expect(linesOf(await verifyAll(pool))).toEqual([]);
  await sealAll(pool);
  expect(await verifyAll(pool)).toMatchObject({ ok: true, unsealed: 0 });
});

test('changes nothing the second time', async () => {
  const { pool } = simulation;
  expect(await erasePayloads(pool, { contractRef: 'pol-1' }, by)).toBe(0);
  expect((await pool.query("select from trail where event = 'erase'")).rows).toHaveLength(2);
});

test('refuses what has not ended, and erases nothing else of the contract either', async () => {
  const { pool } = simulation;
  const ended = await simulation.publish({ contractRef: 'pol-2' });
  await simulation.deliver(ended);
  const open = await simulation.publish({ contractRef: 'pol-2' });
  await expect(erasePayloads(pool, { contractRef: 'pol-2' }, by)).rejects.toMatchObject({
    code: 'transition_not_allowed',
    message: expect.stringContaining(`${open} is due`),
  });
  expect((await bodyOf(ended)).bytes).not.toBe(null);
  expect(await erasePayloads(pool, { deliveryId: ended }, by)).toBe(1);
});

test('refuses what is on hold until the hold is released', async () => {
  const { pool } = simulation;
  const id = await simulation.publish({ contractRef: 'pol-3' });
  await simulation.deliver(id);
  const hold = { contractRef: 'pol-3', actor: 'cli:ada', reason: 'lawsuit' };
  await placeHold(pool, hold);
  await expect(placeHold(pool, hold)).rejects.toMatchObject({ code: 'transition_not_allowed' });
  await expect(erasePayloads(pool, { deliveryId: id }, by)).rejects.toThrow(
    'contract pol-3 is on hold: lawsuit',
  );
  await endHold(pool, hold);
  await expect(endHold(pool, hold)).rejects.toMatchObject({ code: 'not_found' });
  expect(await erasePayloads(pool, { deliveryId: id }, by)).toBe(1);
});

test('refuses a contract and a delivery that it does not know', async () => {
  const { pool } = simulation;
  await expect(erasePayloads(pool, { contractRef: 'none' }, by)).rejects.toMatchObject({ code: 'not_found' });
  await expect(erasePayloads(pool, { deliveryId: 'dlv_x' }, by)).rejects.toMatchObject({ code: 'not_found' });
});

test('what was erased is not replayed', async () => {
  const { pool } = simulation;
  const id = await simulation.publish();
  await simulation.deliver(id, 404);
  await erasePayloads(pool, { deliveryId: id }, by);
  const operator = createDeliveryOperator({
    pool,
    publisher: { countReady: () => Promise.resolve(0) },
    announcer: recordAnnouncements().announcer,
    deliveriesQueue: 'none',
    timeoutMs: 1_000,
  });
  await expect(operator.retry(id, { ...by, force: false })).rejects.toMatchObject({
    code: 'transition_not_allowed',
    message: `the payload of ${id} was erased: there is nothing to send`,
  });
  expect(linesOf(await verifyAll(pool))).toEqual([]);
});
