import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { listAuditRecords } from '../../src/store/evidence/audit.ts';
import { listDeliveriesAsked } from '../../src/store/evidence/questions.ts';
import { inTransaction } from '../../src/store/pool.ts';
import type { Reminder } from '../../src/store/reminders.ts';
import { lockDelivery } from '../../src/store/reschedules.ts';
import { claimSome } from '../support/attempts.ts';
import { daysFromToday } from '../support/reminders.ts';
import { useRescheduling } from './rescheduling.ts';

const { pool, rescheduler, schedule, moveTo, claim, factsOf } = useRescheduling();

test('keeps why it was moved, and is found by the renewal date that it was moved from', async () => {
  const reminder = await schedule({ contractRef: `pol-moved-${randomUUID()}` });
  const { contractRef, deliveryId, renewalDate } = reminder;
  await moveTo(reminder, 200, { reason: 'the customer asked' });
  const trail = await pool().query<{ detail: string }>(
    "select detail from trail where delivery_id = $1 and event = 'reschedule'",
    [deliveryId],
  );
  expect(JSON.parse(trail.rows[0]?.detail ?? '{}')).toMatchObject({ reason: 'the customer asked' });

  const ask = (date: string): Promise<string[]> =>
    listDeliveriesAsked(pool(), { contractRef, date, limit: 9 });
  expect(await ask(renewalDate)).toEqual([deliveryId]);
  expect(await ask(daysFromToday(200))).toEqual([deliveryId]);
  expect(await ask(daysFromToday(111))).toEqual([]);
  const cancel = { reference: { contractRef }, reason: 'x', actor: 'test' };
  await rescheduler().cancel(cancel);
  const shown = await listAuditRecords(
    pool(),
    { contractRef, date: renewalDate },
    { after: undefined, limit: 9 },
  );
  expect(shown.map((r) => r.deliveryId)).toEqual([deliveryId]);
});

test('the same reschedule twice changes nothing the second time', async () => {
  const reminder = await schedule();
  const first = await moveTo(reminder, 60);
  const second = await moveTo(reminder, 60);
  expect(second).toEqual(first);
  await moveTo(reminder, 30);
  await claim(reminder);
  expect((await moveTo(reminder, 30)).applied).toBe('full');
  expect((await moveTo(reminder, 29)).applied).toBe('timing_only');
  expect((await moveTo(reminder, 29)).applied).toBe('timing_only');
  expect((await factsOf(reminder)).trail).toEqual(['schedule', 'reschedule', 'reschedule', 'reschedule']);
});

test('a reschedule that comes again after a newer one, under its key, changes nothing', async () => {
  const reminder = await schedule();
  const idempotencyKey = randomUUID();
  await moveTo(reminder, 60, { idempotencyKey });
  await moveTo(reminder, 70);
  expect((await moveTo(reminder, 60, { idempotencyKey })).reminder.renewalDate).toBe(daysFromToday(70));
  await expect(moveTo(reminder, 61, { idempotencyKey })).rejects.toMatchObject({
    code: 'idempotency_key_reused',
  });
});

test('of many reschedules at once each is told, and the latest revision is what is in force', async () => {
  const reminder = await schedule();
  const results = await Promise.all([60, 70, 80, 90].map((days) => moveTo(reminder, days)));
  const last = results.map((r) => r.reminder).sort((a, b) => b.revision - a.revision)[0] as Reminder;
  expect(new Set(results.map((r) => r.reminder.revision))).toEqual(new Set([2, 3, 4, 5]));
  const facts = await factsOf(reminder);
  expect(facts).toMatchObject({ revision: 5, due_at: last.dueAt, deadline_at: last.deadlineAt });
  expect(JSON.parse(facts.body).renewal_date).toBe(last.renewalDate);
  expect(facts.trail).toHaveLength(5);
});

test('a claim does not wait for a reschedule that is being written, and wins nothing of it', async () => {
  const reminder = await schedule();
  await inTransaction(pool(), async (db) => {
    await lockDelivery(db, reminder.deliveryId);
    expect(await claim(reminder)).toMatchObject({ verdict: 'wait', attempt: 1 });
  });
  expect(await claim(reminder)).toMatchObject({ verdict: 'claimed' });
});

test('a reschedule waits for a claim that is being written, and then moves the timing only', async () => {
  const reminder = await schedule();
  let moving: ReturnType<typeof moveTo> | undefined;
  await inTransaction(pool(), async (db) => {
    await lockDelivery(db, reminder.deliveryId);
    moving = moveTo(reminder, 60);
    await db.query({
      text: `update delivery
                set state = 'in_flight', attempt = 1, claimed_at = now(), claimed_by = 'worker@test',
                    claim_expires_at = now() + interval '15 s'
              where delivery_id = $1`,
      values: [reminder.deliveryId],
    });
  });
  expect((await moving)?.applied).toBe('timing_only');
});

test('whoever wins, claim or reschedule, the call has the bytes that are stored and audited', async () => {
  const all = await Promise.all(Array.from({ length: 60 }, () => schedule()));
  const wakeUps = all.map((r) => ({ deliveryId: r.deliveryId, attempt: 1 }));
  const [verdicts, moves] = await Promise.all([
    claimSome(pool(), wakeUps, { holder: 'worker@test', maxPerEndpoint: 1_000 }),
    Promise.all(all.map((r) => moveTo(r, 20))),
  ]);
  for (const [i, reminder] of all.entries()) {
    const verdict = verdicts.get(reminder.deliveryId);
    if (verdict?.verdict === 'claimed') {
      expect(verdict.claim.bodySha256.toString('hex')).toBe((await factsOf(reminder)).body_sha256);
      if (verdict.claim.revision === 1) expect(moves[i]?.applied).toBe('timing_only');
    } else expect(moves[i]?.applied).toBe('full');
  }
});

test('refuses what could not be sent in time, and leaves everything as it was', async () => {
  const reminder = await schedule();
  await expect(moveTo(reminder, 60, { deadline: 'P40D' })).rejects.toMatchObject({ code: 'window_closed' });
  await expect(moveTo(reminder, -1)).rejects.toMatchObject({ code: 'window_closed' });
  expect(await factsOf(reminder)).toMatchObject({ revision: 1, trail: ['schedule'] });
});

test('a contract names a reminder only if exactly one of it has not ended', async () => {
  const one = await schedule();
  const other = await schedule({ contractRef: one.contractRef, renewalDate: daysFromToday(60) });
  const byContract = {
    reference: { contractRef: one.contractRef },
    renewalDate: daysFromToday(90),
    actor: 'test',
  };
  await expect(rescheduler().reschedule(byContract)).rejects.toMatchObject({ code: 'ambiguous_reference' });
  await rescheduler().cancel({ reference: { reminderId: one.reminderId }, reason: 'test', actor: 'test' });
  expect((await rescheduler().reschedule(byContract)).reminder.reminderId).toBe(other.reminderId);
  await expect(
    rescheduler().reschedule({ ...byContract, reference: { contractRef: 'pol-unknown' } }),
  ).rejects.toMatchObject({ code: 'ambiguous_reference' });
  await expect(
    rescheduler().reschedule({ ...byContract, reference: { reminderId: 'rem_00000000000000000000000000' } }),
  ).rejects.toMatchObject({ code: 'not_found' });
});
