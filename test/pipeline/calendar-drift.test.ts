import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReminderAcceptor } from '../../src/pipeline/accept/reminders.ts';
import { checkCalendarDrift, type DriftReport } from '../../src/pipeline/timing/calendar-drift.ts';
import { insertEndpoint } from '../../src/store/endpoints.ts';
import type { Reminder } from '../../src/store/reminders.ts';
import { calendarsWith } from '../domain/calendar/support.ts';
import { claimOne } from '../support/attempts.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { dueNow, recordAnnouncements } from '../support/reminders.ts';

/** Poland before Christmas Eve became a holiday. */
const BEFORE = calendarsWith({
  PL: { openings: [{ date: '12-24', reason: 'before the law' }] },
  desk: { holidays_from: 'PL' },
});
/** Poland as the holiday library has it, and one calendar less. */
const TODAY = calendarsWith();
const TIMEOUT_MS = 10_000;
const BY = { actor: 'cli:test', reason: 'the law of 2024' };

let database: TestDatabase;
const { announcer, announced } = recordAnnouncements();
let moving: Reminder;
let staying: Reminder;
let sent: Reminder;
let lost: Reminder;
let shut: Reminder;

beforeAll(async () => {
  database = await openTestDatabase();
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
  const acceptor = createReminderAcceptor({
    db: database.pool,
    announcer,
    calendars: BEFORE,
    timeoutMs: TIMEOUT_MS,
  });
  // Christmas Eve of a year that is ahead, on a Thursday.
  const eve = { renewalDate: '2037-01-23', jurisdiction: 'PL', timeZone: undefined };
  const schedule = async (changes: object): Promise<Reminder> =>
    (await acceptor.schedule(dueNow({ ...eve, ...changes }))).reminder;
  moving = await schedule({ contractRef: 'moving' });
  staying = await schedule({ contractRef: 'staying', renewalDate: '2037-01-22' });
  lost = await schedule({ contractRef: 'lost', jurisdiction: 'desk' });
  shut = await schedule({ contractRef: 'shut', deadlineAt: new Date('2036-12-25T00:00:00Z') });
  sent = await schedule({ contractRef: 'sent' });
  await database.pool.query(`update delivery set due_at = now() where delivery_id = $1`, [sent.deliveryId]);
  await claimOne(database.pool, sent.deliveryId, {
    leaseMs: 60_000,
    timeoutMs: TIMEOUT_MS,
    holder: 'worker@test',
    maxPerEndpoint: 10,
  });
  await acceptor.close();
});

afterAll(() => database.close());

function check(apply?: typeof BY): Promise<DriftReport> {
  return checkCalendarDrift({
    pool: database.pool,
    announcer,
    calendars: TODAY,
    timeoutMs: TIMEOUT_MS,
    apply,
  });
}

async function storedOf(reminder: Reminder) {
  const found = await database.pool.query(
    `select r.due_at, r.revision, d.due_at as delivery_due_at, d.scheduled_at, d.idempotency_key,
            r.due_proof ->> 'due_at' as proof_due_at,
            (select json_agg(json_build_object('event', t.event, 'actor', t.actor, 'detail', t.detail::json)
                             order by t.entry)
               from trail t where t.delivery_id = r.delivery_id) as trail
       from reminder r
       join delivery d on d.delivery_id = r.delivery_id
      where r.reminder_id = $1`,
    [reminder.reminderId],
  );
  return found.rows[0];
}

const EVE = new Date('2036-12-24T08:00:00Z');
const AFTER_CHRISTMAS = new Date('2036-12-29T08:00:00Z');

test('plans what moves, from when to when and why, and changes nothing', async () => {
  expect(moving.dueAt).toEqual(EVE);
  const report = await check();
  expect(report.checked).toBe(4);
  expect(report.drifted).toMatchObject([
    { contractRef: 'moving', from: { dueAt: EVE }, to: { dueAt: AFTER_CHRISTMAS } },
  ]);
  expect(report.drifted[0]?.why[0]).toMatchObject({
    cause: 'day_closed',
    note: expect.stringMatching(/24 December 2036 is closed: public holiday/),
  });
  expect(await storedOf(moving)).toMatchObject({ due_at: EVE, revision: 1 });
});

test('names what cannot be computed any more, and what would move past its deadline; both stay', async () => {
  const { problems } = await check();
  expect(new Set(problems.map((p) => `${p.contractRef} ${p.code}`))).toEqual(
    new Set(['lost unknown_jurisdiction', 'shut window_closed']),
  );
});

test('applied, it moves the time under the same key with an entry in the trail; a second run finds nothing', async () => {
  const before = await storedOf(moving);
  announced.length = 0;
  const report = await check(BY);
  expect(report.drifted).toMatchObject([{ contractRef: 'moving', outcome: 'moved' }]);
  expect(announced).toMatchObject([{ deliveryId: moving.deliveryId, attempt: 1 }]);
  const after = await storedOf(moving);
  expect(after).toMatchObject({
    due_at: AFTER_CHRISTMAS,
    delivery_due_at: AFTER_CHRISTMAS,
    scheduled_at: AFTER_CHRISTMAS,
    proof_due_at: AFTER_CHRISTMAS.toISOString(),
    revision: 2,
    idempotency_key: before.idempotency_key,
  });
  expect(after.trail[1]).toMatchObject({
    event: 'recalculate',
    actor: 'cli:test',
    detail: {
      reason: 'the law of 2024',
      from: { due_at: EVE.toISOString() },
      to: { due_at: AFTER_CHRISTMAS.toISOString() },
    },
  });
  for (const reminder of [staying, sent, lost, shut]) {
    expect((await storedOf(reminder)).revision).toBe(1);
  }
  expect((await check(BY)).drifted).toEqual([]);
  expect((await storedOf(moving)).revision).toBe(2);
});
