import { expect, test } from 'vitest';
import { moveDeliveries } from '../../src/store/moves.ts';
import { linesOf, verifyAll } from '../evidence/support.ts';
import { daysFromToday } from '../support/reminders.ts';
import { DAY_MS, DELIVER, TIMEOUT_MS, useRescheduling } from './rescheduling.ts';

const { announced, pool, rescheduler, schedule, moveTo, claim, settle, factsOf } = useRescheduling();

test('what was delivered is not sent again', async () => {
  const reminder = await schedule();
  await claim(reminder);
  await settle(reminder, DELIVER);
  await expect(moveTo(reminder, 60)).rejects.toMatchObject({ code: 'already_delivered' });
  await expect(
    rescheduler().reschedule({
      reference: { contractRef: reminder.contractRef },
      renewalDate: daysFromToday(60),
      actor: 'test',
    }),
  ).rejects.toMatchObject({ code: 'already_delivered' });
  expect(await factsOf(reminder)).toMatchObject({
    state: 'delivered',
    revision: 1,
    audits: [{ revision: 1 }],
  });
});

test('what was dead-lettered stays so until it is replayed, and moves then under the same key and body', async () => {
  const reminder = await schedule();
  await claim(reminder);
  await settle(reminder, { decision: 'give_up', outcome: 'terminal', deadReason: 'terminal_response' });
  await expect(moveTo(reminder, 60)).rejects.toMatchObject({ code: 'transition_not_allowed' });
  const before = await factsOf(reminder);
  await moveDeliveries(pool(), {
    move: 'replay',
    deliveryIds: [reminder.deliveryId],
    actor: 'test',
    trail: '{}',
    timeoutMs: TIMEOUT_MS,
  });
  const { applied, reminder: moved } = await moveTo(reminder, 60);
  expect(applied).toBe('timing_only');
  expect(await factsOf(reminder)).toMatchObject({ due_at: moved.dueAt, body_sha256: before.body_sha256 });
  await moveTo(reminder, 30);
  await claim(reminder, { attempt: 2 });
  await settle(reminder, { ...DELIVER, attempt: 2, revision: 3 });
  expect((await factsOf(reminder)).audits).toMatchObject([
    { state: 'dead_lettered', cycle: 1, revision: 1 },
    { state: 'delivered', cycle: 2, revision: 3 },
  ]);
});

test('what was cancelled and replayed before its first attempt waits for its time, and keeps the body that is audited', async () => {
  const reminder = await schedule({ renewalDate: daysFromToday(90) });
  const before = await factsOf(reminder);
  await rescheduler().cancel({
    reference: { reminderId: reminder.reminderId },
    reason: 'by mistake',
    actor: 'test',
  });
  await expect(moveTo(reminder, 60)).rejects.toMatchObject({ code: 'transition_not_allowed' });
  // Its endpoint is paused.
  const [replayed] = await moveDeliveries(pool(), {
    move: 'replay_held',
    deliveryIds: [reminder.deliveryId],
    actor: 'test',
    trail: '{}',
    timeoutMs: TIMEOUT_MS,
  });
  expect(replayed?.remainingMs).toBeGreaterThan(59 * DAY_MS);
  expect((await factsOf(reminder)).due_at).toEqual(before.due_at);
  const { applied, reminder: moved } = await moveTo(reminder, 100);
  expect(applied).toBe('timing_only');
  expect(await factsOf(reminder)).toMatchObject({ due_at: moved.dueAt, body: before.body, revision: 2 });
  const findings = linesOf(await verifyAll(pool()));
  expect(findings.filter((line) => line.includes(reminder.deliveryId))).toEqual([]);
});

test('what is replayed after its time is due at once', async () => {
  const reminder = await schedule({ renewalDate: daysFromToday(29) });
  const move = (name: 'cancel' | 'replay') =>
    moveDeliveries(pool(), {
      move: name,
      deliveryIds: [reminder.deliveryId],
      actor: 'test',
      trail: '{}',
      timeoutMs: TIMEOUT_MS,
    });
  await move('cancel');
  await move('replay');
  expect(await claim(reminder)).toMatchObject({ verdict: 'claimed' });
});

test('what is held stays held at its new time', async () => {
  const reminder = await schedule();
  const move = (name: 'hold' | 'release') =>
    moveDeliveries(pool(), {
      move: name,
      deliveryIds: [reminder.deliveryId],
      actor: 'test',
      trail: '{}',
      timeoutMs: TIMEOUT_MS,
    });
  await move('hold');
  announced.length = 0;
  const { applied, reminder: moved } = await moveTo(reminder, 60);
  expect({ applied, state: moved.state }).toEqual({ applied: 'full', state: 'held' });
  expect(announced).toEqual([]);
  await move('release');
  expect(await factsOf(reminder)).toMatchObject({ state: 'due', due_at: moved.dueAt });
});

test('a cancelled reminder is never claimed, has one audit record with the reason, and stays cancelled', async () => {
  const reminder = await schedule();
  await moveTo(reminder, 20);
  const cancel = () =>
    rescheduler().cancel({
      reference: { contractRef: reminder.contractRef },
      reason: 'contract ended',
      actor: 'test',
    });
  expect((await cancel()).reminder.state).toBe('cancelled');
  expect((await cancel()).reminder.state).toBe('cancelled');
  expect(await claim(reminder)).toMatchObject({ verdict: 'ended' });
  await expect(moveTo(reminder, 60)).rejects.toMatchObject({ code: 'transition_not_allowed' });
  const facts = await factsOf(reminder);
  expect(facts.audits).toMatchObject([{ state: 'cancelled', revision: 2, body_sha256: facts.body_sha256 }]);
  expect(facts.trail).toEqual(['schedule', 'reschedule', 'cancel']);
});

test('an attempt under way cannot be called back; once it has failed, the reminder can be cancelled', async () => {
  const reminder = await schedule();
  const cancel = () =>
    rescheduler().cancel({ reference: { reminderId: reminder.reminderId }, reason: 'test', actor: 'test' });
  await claim(reminder);
  await expect(cancel()).rejects.toMatchObject({ code: 'transition_not_allowed' });
  await settle(reminder, { delayMs: 60_000 });
  expect((await cancel()).reminder.state).toBe('cancelled');
  const delivered = await schedule();
  await claim(delivered);
  await settle(delivered, DELIVER);
  await expect(
    rescheduler().cancel({ reference: { reminderId: delivered.reminderId }, reason: 'test', actor: 'test' }),
  ).rejects.toMatchObject({ code: 'already_delivered' });
});
