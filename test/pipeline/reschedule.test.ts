import { expect, test } from 'vitest';
import { hastenDelivery } from '../../src/store/deliveries.ts';
import { linesOf, verifyAll } from '../evidence/support.ts';
import { daysFromToday } from '../support/reminders.ts';
import { DAY_MS, DELIVER, TIMEOUT_MS, useRescheduling } from './rescheduling.ts';

const { announced, pool, rescheduler, schedule, moveTo, claim, settle, factsOf } = useRescheduling();

test('before the first attempt everything follows: time, deadline, body, proof, and a wake-up for the new time', async () => {
  const reminder = await schedule({ renewalDate: daysFromToday(90) });
  announced.length = 0;
  const { applied, reminder: moved } = await moveTo(reminder, 30);
  const facts = await factsOf(reminder);
  expect(applied).toBe('full');
  expect(moved).toMatchObject({ renewalDate: daysFromToday(30), revision: 2, lateStart: true, state: 'due' });
  expect(moved.dueProof).toMatchObject({ inputs: { renewal_date: daysFromToday(30) } });
  expect(facts).toMatchObject({
    state: 'due',
    due_at: moved.dueAt,
    deadline_at: moved.deadlineAt,
    revision: 2,
  });
  expect(JSON.parse(facts.body)).toMatchObject({
    renewal_date: daysFromToday(30),
    deadline_at: moved.deadlineAt.toISOString(),
    data: { premium: 12.5 },
  });
  expect(facts.trail).toEqual(['schedule', 'reschedule']);
  expect(announced).toMatchObject([{ deliveryId: reminder.deliveryId, attempt: 1 }]);
  const verdict = await claim(reminder);
  expect(verdict.verdict === 'claimed' && verdict.claim.body.toString()).toBe(facts.body);
});

test('keeps what is not given, a given deadline and the bytes of the payload among it', async () => {
  const deadlineAt = new Date(Date.now() + 200 * DAY_MS);
  const reminder = await schedule({ deadlineAt, payload: { big: 1e21, text: 'ü' } });
  const before = JSON.parse((await factsOf(reminder)).body);
  const { reminder: moved } = await rescheduler().reschedule({
    reference: { contractRef: reminder.contractRef },
    noticePeriod: 'P10D',
    actor: 'test',
  });
  expect(moved).toMatchObject({ renewalDate: reminder.renewalDate, noticePeriod: 'P10D', deadlineAt });
  expect(JSON.parse((await factsOf(reminder)).body).data).toEqual(before.data);
});

test('an attempt under way ends under its claim, with the body that it was claimed with', async () => {
  const reminder = await schedule();
  const before = await factsOf(reminder);
  await claim(reminder);
  const { applied, reminder: moved } = await moveTo(reminder, 20);
  expect(applied).toBe('timing_only');
  expect(moved.state).toBe('in_flight');
  await settle(reminder, DELIVER);
  const facts = await factsOf(reminder);
  expect(facts.body_sha256).toBe(before.body_sha256);
  expect(facts.state).toBe('delivered');
  expect(facts.audits).toMatchObject([{ state: 'delivered', revision: 2, body_sha256: before.body_sha256 }]);
  expect(new Date(facts.audits[0]?.deadline_at ?? '')).toEqual(moved.deadlineAt);
});

test('a retry decided before a move to later waits for the new time', async () => {
  const reminder = await schedule();
  await claim(reminder);
  const { reminder: moved } = await moveTo(reminder, 60);
  const settled = await settle(reminder, { delayMs: 1_000 });
  expect(settled).toMatchObject({ effect: 'applied', state: 'due' });
  expect((await factsOf(reminder)).due_at).toEqual(moved.dueAt);
  expect(await claim(reminder, { attempt: 2 })).toMatchObject({ verdict: 'wait', attempt: 2 });
});

test('a retry decided before a move to later is never early, however close the deadline is to the new time', async () => {
  const reminder = await schedule();
  await claim(reminder);
  const deadlineAt = new Date(new Date(`${daysFromToday(30)}T00:00:00Z`).getTime() + TIMEOUT_MS + 1);
  const { reminder: moved } = await moveTo(reminder, 60, { deadlineAt });
  await settle(reminder, { delayMs: 1_000 });
  expect((await factsOf(reminder)).due_at).toEqual(moved.dueAt);
});

test('a retry decided before the deadline moved closer comes at the new last call', async () => {
  const reminder = await schedule();
  await claim(reminder);
  const deadlineAt = new Date(Date.now() + 3_600_000);
  await moveTo(reminder, 29, { deadlineAt });
  await settle(reminder, { delayMs: 2 * 3_600_000 });
  expect((await factsOf(reminder)).due_at).toEqual(new Date(deadlineAt.getTime() - TIMEOUT_MS - 5_000));
});

test('an attempt that gave up for want of time is tried again when the deadline has moved meanwhile', async () => {
  const reminder = await schedule();
  await claim(reminder);
  const { reminder: moved } = await moveTo(reminder, 60);
  await settle(reminder, { decision: 'give_up', deadReason: 'deadline_passed' });
  expect(await factsOf(reminder)).toMatchObject({ state: 'due', due_at: moved.dueAt, audits: [] });
});

test('a claim that lapses after a move to later waits for the new time, and a late success still counts once', async () => {
  const reminder = await schedule();
  await claim(reminder, { leaseMs: 0 });
  const { applied, reminder: moved } = await moveTo(reminder, 60);
  expect(applied).toBe('timing_only');
  await settle(reminder, { decision: 'lapse', outcome: 'unknown', revision: 0, delayMs: 0 });
  expect(await factsOf(reminder)).toMatchObject({ state: 'due', due_at: moved.dueAt });
  await settle(reminder, DELIVER);
  const facts = await factsOf(reminder);
  expect(facts).toMatchObject({ state: 'delivered', due_at: null, attempt: 1 });
  expect(facts.audits).toMatchObject([{ state: 'delivered', revision: 2 }]);
  expect(facts.trail).toEqual(['schedule', 'reschedule', 'lapse', 'deliver_late']);
  await expect(moveTo(reminder, 30)).rejects.toMatchObject({ code: 'already_delivered' });
});

test('a claim that lapses after a move to earlier is due at once', async () => {
  const reminder = await schedule();
  await claim(reminder, { leaseMs: 0 });
  await moveTo(reminder, 20);
  await settle(reminder, { decision: 'lapse', outcome: 'unknown', revision: 0, delayMs: 0 });
  expect(await claim(reminder, { attempt: 2 })).toMatchObject({ verdict: 'claimed' });
});

test('between two attempts a move to later moves the retry, and a move back leaves none behind', async () => {
  const reminder = await schedule();
  await claim(reminder);
  await settle(reminder, { delayMs: 3_600_000 });
  const retryAt = (await factsOf(reminder)).due_at;
  const closer = await moveTo(reminder, 20);
  expect(closer.applied).toBe('timing_only');
  expect((await factsOf(reminder)).due_at).toEqual(retryAt);
  const later = await moveTo(reminder, 60);
  expect((await factsOf(reminder)).due_at).toEqual(later.reminder.dueAt);
  await moveTo(reminder, 20);
  expect(await claim(reminder, { attempt: 2 })).toMatchObject({ verdict: 'claimed', claim: { attempt: 2 } });
  await settle(reminder, { ...DELIVER, attempt: 2, revision: 4 });
  expect(await factsOf(reminder)).toMatchObject({ state: 'delivered', audits: [{ revision: 4 }] });
});

test('a move ahead gives all the attempts of the policy anew, and the audit record has every one', async () => {
  const reminder = await schedule();
  await claim(reminder);
  await settle(reminder, { delayMs: 3_600_000 });
  await moveTo(reminder, 60);
  // Then back to where it is due, which by itself gives nothing.
  await moveTo(reminder, 20);
  expect(await claim(reminder, { attempt: 2 })).toMatchObject({ claim: { attempt: 2, attemptBase: 1 } });
  await settle(reminder, { attempt: 2, revision: 3, delayMs: 3_600_000 });
  await moveTo(reminder, 19);
  await pool().query('update delivery set due_at = now() where delivery_id = $1', [reminder.deliveryId]);
  expect(await claim(reminder, { attempt: 3 })).toMatchObject({ claim: { attempt: 3, attemptBase: 1 } });
  await settle(reminder, { ...DELIVER, attempt: 3, revision: 4 });
  const { rows } = await pool().query('select attempts from audit_record where delivery_id = $1', [
    reminder.deliveryId,
  ]);
  expect(rows).toEqual([{ attempts: 3 }]);
  const findings = linesOf(await verifyAll(pool()));
  expect(findings.filter((line) => line.includes(reminder.deliveryId))).toEqual([]);
});

test('a move ahead during the last attempt leaves attempts for the new time, however that one ends', async () => {
  for (const outcome of ['retryable', 'unknown'] as const) {
    const last = { decision: 'give_up', deadReason: 'attempts_exhausted', outcome } as const;
    const ahead = await schedule();
    await claim(ahead, { leaseMs: 0 });
    const { reminder: moved } = await moveTo(ahead, 60);
    await settle(ahead, last);
    expect(await factsOf(ahead)).toMatchObject({ state: 'due', due_at: moved.dueAt, audits: [] });
    const findings = linesOf(await verifyAll(pool()));
    expect(findings.filter((line) => line.includes(ahead.deliveryId))).toEqual([]);
    // At a time that has passed already it was the last.
    const past = await schedule();
    await claim(past, { leaseMs: 0 });
    await moveTo(past, 20);
    await settle(past, last);
    expect(await factsOf(past)).toMatchObject({
      state: 'dead_lettered',
      audits: [{ state: 'dead_lettered' }],
    });
  }
});

test('what was to be sent at once and is moved ahead before that has all its attempts', async () => {
  const reminder = await schedule({ renewalDate: daysFromToday(90) });
  await hastenDelivery(pool(), { deliveryId: reminder.deliveryId, actor: 'test', trail: '{}' });
  await moveTo(reminder, 60);
  await moveTo(reminder, 20);
  expect(await claim(reminder)).toMatchObject({ claim: { attempt: 1, attemptBase: 0 } });
});
