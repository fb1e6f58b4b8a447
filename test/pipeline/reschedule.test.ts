import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReminderAcceptor, type ReminderAcceptor } from '../../src/pipeline/accept/reminders.ts';
import { createRescheduler, type Rescheduler } from '../../src/pipeline/timing/reschedule.ts';
import { openCalendars } from '../../src/roles/parts.ts';
import { loadConfig } from '../../src/runtime/config.ts';
import { claimDeliveries } from '../../src/store/claims.ts';
import { hastenDelivery } from '../../src/store/deliveries.ts';
import { insertEndpoint } from '../../src/store/endpoints.ts';
import { listAuditRecords } from '../../src/store/evidence/audit.ts';
import { listDeliveriesAsked } from '../../src/store/evidence/questions.ts';
import { moveDeliveries } from '../../src/store/moves.ts';
import { inTransaction } from '../../src/store/pool.ts';
import type { Reminder } from '../../src/store/reminders.ts';
import { lockDelivery } from '../../src/store/reschedules.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import type { Settlement } from '../../src/store/settlement.ts';
import type { Verdict } from '../../src/store/verdict.ts';
import { linesOf, verifyAll } from '../evidence/support.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { daysFromToday, dueNow, recordAnnouncements } from '../support/reminders.ts';

const TIMEOUT_MS = 10_000;
const LEASE_MS = 15_000;
const DAY_MS = 86_400_000;

let database: TestDatabase;
let reminders: ReminderAcceptor;
let rescheduler: Rescheduler;
const { announcer, announced } = recordAnnouncements();

beforeAll(async () => {
  database = await openTestDatabase();
  const calendars = openCalendars(loadConfig({ env: { DUEPOST_ENV: 'test' }, needs: [] }));
  const common = { announcer, calendars, timeoutMs: TIMEOUT_MS };
  reminders = createReminderAcceptor({ ...common, db: database.pool });
  rescheduler = createRescheduler({ ...common, pool: database.pool });
  await insertEndpoint(database.pool, {
    endpointId: 'ep_00000000000000000000000000',
    name: 'notices',
    url: 'https://notices.example/renewals',
    mode: 'live',
    eventTypes: ['*'],
    policy: undefined,
    maxInFlight: undefined,
    headers: {},
  });
});

afterAll(async () => {
  await reminders.close();
  await database.close();
});

async function schedule(changes: Parameters<typeof dueNow>[0] = {}): Promise<Reminder> {
  return (await reminders.schedule(dueNow(changes))).reminder;
}

/** Moves a reminder's renewal, and with it its due time, by the P30D that it was scheduled with. */
function moveTo(reminder: Reminder, days: number, more: object = {}) {
  return rescheduler.reschedule({
    reference: { reminderId: reminder.reminderId },
    renewalDate: daysFromToday(days),
    actor: 'test',
    ...more,
  });
}

async function claim(reminder: Reminder, { attempt = 1, leaseMs = LEASE_MS } = {}): Promise<Verdict> {
  const verdicts = await claimDeliveries(database.pool, {
    wakeUps: [{ deliveryId: reminder.deliveryId, attempt }],
    leaseMs,
    timeoutMs: TIMEOUT_MS,
    holder: 'worker@test',
    maxPerEndpoint: 1_000,
    inHand: new Set(),
    taken: new Map(),
  });
  return verdicts.get(reminder.deliveryId) as Verdict;
}

async function settle(reminder: Reminder, result: Partial<Settlement>) {
  const [settled] = await settleAttempts(
    database.pool,
    [
      {
        deliveryId: reminder.deliveryId,
        attempt: 1,
        revision: 1,
        decision: 'retry',
        outcome: 'retryable',
        endpointFailed: false,
        gone: false,
        handedBack: false,
        retryAfterClamped: false,
        trail: JSON.stringify({ attempt: result.attempt ?? 1 }),
        ...result,
      },
    ],
    { holder: 'worker@test', timeoutMs: TIMEOUT_MS },
  );
  return settled;
}

const DELIVER = { decision: 'deliver', outcome: 'delivered', status: 200 } as const;

interface Facts {
  state: string;
  due_at: Date | null;
  deadline_at: Date;
  revision: number;
  attempt: number;
  body: string;
  body_sha256: string;
  audits: { state: string; revision: number; deadline_at: string; body_sha256: string; cycle: number }[];
  trail: string[];
  broken_entries: number;
}

/** Everything that a person can read about a reminder's delivery afterwards. */
async function factsOf(reminder: Reminder): Promise<Facts> {
  const result = await database.pool.query<Facts>(
    `select d.state, d.due_at, d.deadline_at, d.revision, d.attempt,
            convert_from(b.bytes, 'UTF8') as body, encode(b.sha256, 'hex') as body_sha256,
            (select coalesce(json_agg(json_build_object('state', a.state, 'revision', a.revision, 'cycle', a.cycle,
                      'deadline_at', a.deadline_at, 'body_sha256', encode(a.body_sha256, 'hex')) order by a.cycle), '[]')
               from audit_record a where a.delivery_id = d.delivery_id) as audits,
            (select array_agg(t.event order by t.entry) from trail t where t.delivery_id = d.delivery_id) as trail,
            (select count(*)::int
               from (select t.sha256, trail_hash(coalesce(lag(t.sha256) over (order by t.entry), ''::bytea),
                              t.entry, t.at, t.event, t.actor, t.detail) as computed
                       from trail t where t.delivery_id = d.delivery_id) as chain
              where chain.sha256 <> chain.computed) as broken_entries
       from delivery d
       join body b on b.source_id = d.reminder_id
      where d.delivery_id = $1`,
    [reminder.deliveryId],
  );
  const facts = result.rows[0] as Facts;
  expect(facts.broken_entries).toBe(0);
  return facts;
}

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
  const { reminder: moved } = await rescheduler.reschedule({
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
  await database.pool.query('update delivery set due_at = now() where delivery_id = $1', [
    reminder.deliveryId,
  ]);
  expect(await claim(reminder, { attempt: 3 })).toMatchObject({ claim: { attempt: 3, attemptBase: 1 } });
  await settle(reminder, { ...DELIVER, attempt: 3, revision: 4 });
  const { rows } = await database.pool.query('select attempts from audit_record where delivery_id = $1', [
    reminder.deliveryId,
  ]);
  expect(rows).toEqual([{ attempts: 3 }]);
  const findings = linesOf(await verifyAll(database.pool));
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
    const findings = linesOf(await verifyAll(database.pool));
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
  await hastenDelivery(database.pool, { deliveryId: reminder.deliveryId, actor: 'test', trail: '{}' });
  await moveTo(reminder, 60);
  await moveTo(reminder, 20);
  expect(await claim(reminder)).toMatchObject({ claim: { attempt: 1, attemptBase: 0 } });
});

test('what was delivered is not sent again', async () => {
  const reminder = await schedule();
  await claim(reminder);
  await settle(reminder, DELIVER);
  await expect(moveTo(reminder, 60)).rejects.toMatchObject({ code: 'already_delivered' });
  await expect(
    rescheduler.reschedule({
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
  await moveDeliveries(database.pool, {
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
  await rescheduler.cancel({
    reference: { reminderId: reminder.reminderId },
    reason: 'by mistake',
    actor: 'test',
  });
  await expect(moveTo(reminder, 60)).rejects.toMatchObject({ code: 'transition_not_allowed' });
  // Its endpoint is paused.
  const [replayed] = await moveDeliveries(database.pool, {
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
  const findings = linesOf(await verifyAll(database.pool));
  expect(findings.filter((line) => line.includes(reminder.deliveryId))).toEqual([]);
});

test('what is replayed after its time is due at once', async () => {
  const reminder = await schedule({ renewalDate: daysFromToday(29) });
  const move = (name: 'cancel' | 'replay') =>
    moveDeliveries(database.pool, {
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
    moveDeliveries(database.pool, {
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

test('keeps why it was moved, and is found by the renewal date that it was moved from', async () => {
  const { pool } = database;
  const reminder = await schedule({ contractRef: `pol-moved-${randomUUID()}` });
  const { contractRef, deliveryId, renewalDate } = reminder;
  await moveTo(reminder, 200, { reason: 'the customer asked' });
  const trail = await pool.query<{ detail: string }>(
    "select detail from trail where delivery_id = $1 and event = 'reschedule'",
    [deliveryId],
  );
  expect(JSON.parse(trail.rows[0]?.detail ?? '{}')).toMatchObject({ reason: 'the customer asked' });

  const ask = (date: string): Promise<string[]> => listDeliveriesAsked(pool, { contractRef, date, limit: 9 });
  expect(await ask(renewalDate)).toEqual([deliveryId]);
  expect(await ask(daysFromToday(200))).toEqual([deliveryId]);
  expect(await ask(daysFromToday(111))).toEqual([]);
  const cancel = { reference: { contractRef }, reason: 'x', actor: 'test' };
  await rescheduler.cancel(cancel);
  const shown = await listAuditRecords(
    pool,
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
  await inTransaction(database.pool, async (db) => {
    await lockDelivery(db, reminder.deliveryId);
    expect(await claim(reminder)).toMatchObject({ verdict: 'wait', attempt: 1 });
  });
  expect(await claim(reminder)).toMatchObject({ verdict: 'claimed' });
});

test('a reschedule waits for a claim that is being written, and then moves the timing only', async () => {
  const reminder = await schedule();
  let moving: ReturnType<typeof moveTo> | undefined;
  await inTransaction(database.pool, async (db) => {
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
    claimDeliveries(database.pool, {
      wakeUps,
      leaseMs: LEASE_MS,
      timeoutMs: TIMEOUT_MS,
      holder: 'worker@test',
      maxPerEndpoint: 1_000,
      inHand: new Set(),
      taken: new Map(),
    }),
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
  await expect(rescheduler.reschedule(byContract)).rejects.toMatchObject({ code: 'ambiguous_reference' });
  await rescheduler.cancel({ reference: { reminderId: one.reminderId }, reason: 'test', actor: 'test' });
  expect((await rescheduler.reschedule(byContract)).reminder.reminderId).toBe(other.reminderId);
  await expect(
    rescheduler.reschedule({ ...byContract, reference: { contractRef: 'pol-unknown' } }),
  ).rejects.toMatchObject({ code: 'ambiguous_reference' });
  await expect(
    rescheduler.reschedule({ ...byContract, reference: { reminderId: 'rem_00000000000000000000000000' } }),
  ).rejects.toMatchObject({ code: 'not_found' });
});

test('a cancelled reminder is never claimed, has one audit record with the reason, and stays cancelled', async () => {
  const reminder = await schedule();
  await moveTo(reminder, 20);
  const cancel = () =>
    rescheduler.cancel({
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
    rescheduler.cancel({ reference: { reminderId: reminder.reminderId }, reason: 'test', actor: 'test' });
  await claim(reminder);
  await expect(cancel()).rejects.toMatchObject({ code: 'transition_not_allowed' });
  await settle(reminder, { delayMs: 60_000 });
  expect((await cancel()).reminder.state).toBe('cancelled');
  const delivered = await schedule();
  await claim(delivered);
  await settle(delivered, DELIVER);
  await expect(
    rescheduler.cancel({ reference: { reminderId: delivered.reminderId }, reason: 'test', actor: 'test' }),
  ).rejects.toMatchObject({ code: 'already_delivered' });
});
