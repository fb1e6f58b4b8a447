import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Calendars } from '../../src/domain/calendar/calendars.ts';
import { isoDate, parseDay } from '../../src/domain/calendar/dates.ts';
import type { Expected, ReconciledRow } from '../../src/domain/shadow/reconcile.ts';
import { createReminderAcceptor } from '../../src/pipeline/accept/reminders.ts';
import { goLive } from '../../src/pipeline/shadow/go-live.ts';
import { reportShadow, type ShadowReport } from '../../src/pipeline/shadow/report.ts';
import { summarize } from '../../src/pipeline/shadow/view.ts';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { openCalendars, openRescheduler } from '../../src/roles/parts.ts';
import type { Reminder } from '../../src/store/reminders.ts';
import { calendarsWith } from '../domain/calendar/support.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday, dueNow } from '../support/reminders.ts';
import { until } from '../support/until.ts';

// Two weeks with the end of summer time (26 October), Reformation Day in Saxony (31 October) and two weekends.
const FROM = new Date('2025-10-25T00:00:00Z');
const TO = new Date('2025-11-08T00:00:00Z');
const JURISDICTIONS = ['DE-SN', 'PL', 'GB-ENG'];
/** Long after the period, so that a test of today can live through it. */
const DEADLINE = new Date('2074-01-01T00:00:00Z');
const LIST_HOLE = 'DE-SN 2025-10-29';
const DST_ROW = 'PL 2025-11-04';

let product: TestProduct;
let receiver: PracticeReceiver;
let calendars: Calendars;
const clean: Reminder[] = [];

beforeAll(async () => {
  receiver = await startPracticeReceiver({ answers: [200] });
  product = await openTestProduct({ roles: ['worker', 'reconciler'] });
  calendars = openCalendars(product.config);
  for (const name of ['clean', 'planted', 'silent']) {
    await product.endpoints.create({ name, url: receiver.url, mode: 'shadow' }, { actor: 'test' });
  }
  for (const endpoint of ['clean', 'planted']) {
    const reminders = await Promise.all(eachNotice((request) => schedule({ ...request, endpoint })));
    if (endpoint === 'clean') clean.push(...reminders);
  }
  await until('everything to be recorded', async () => {
    const left = await product.parts.pool.query('select from delivery where ended_at is null');
    return left.rowCount === 0;
  });
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

/** A notice per calendar and day on which 30 days before the renewal fall, closed days among them. */
function eachNotice<T>(
  make: (request: { contractRef: string; renewalDate: string; jurisdiction: string }) => T,
): T[] {
  const first = parseDay('2025-10-25') as number;
  return JURISDICTIONS.flatMap((jurisdiction) =>
    Array.from({ length: 13 }, (_, i) =>
      make({
        jurisdiction,
        contractRef: `${jurisdiction} ${isoDate(first + i)}`,
        renewalDate: isoDate(first + i + 30),
      }),
    ),
  );
}

async function schedule(changes: object): Promise<Reminder> {
  return (await product.reminders.schedule(dueNow({ timeZone: undefined, deadlineAt: DEADLINE, ...changes })))
    .reminder;
}

/** The list that the old system would have, computed on its own. */
function oldList(): Expected[] {
  return eachNotice((request) => request).map((request, i) => ({
    contractRef: request.contractRef,
    dueAt: calendars.computeDue({ ...request, noticePeriod: 'P30D', deadlineAt: DEADLINE }).dueAt,
    deliveryId: undefined,
    line: i + 2,
  }));
}

function report(endpoint: string, expected: readonly Expected[] | undefined): Promise<ShadowReport> {
  return reportShadow(
    { from: FROM, to: TO, endpoint, expected },
    { db: product.parts.pool, calendars, shadowAll: false },
  );
}

function tell(rows: readonly ReconciledRow[]): string[] {
  return rows
    .filter((row) => row.findings.length > 0)
    .flatMap((row) =>
      row.findings.map(
        (f) =>
          `${row.ours?.contractRef ?? row.expected?.contractRef} ${f.kind} ${f.against ?? ''} ${f.byMs ?? ''}`,
      ),
    )
    .map((line) => line.trim());
}

test('a period without differences passes, and says which weekends and holidays it has seen', async () => {
  const found = await report('clean', oldList());
  expect(found.reasons).toEqual([]);
  expect(found.passed).toBe(true);
  expect(summarize(found.rows)).toMatchObject({ rows: 39, matched: 39, missing: 0, extra: 0 });
  const saxony = found.coverage.jurisdictions.find((j) => j.jurisdiction === 'DE-SN');
  expect(saxony).toMatchObject({
    deliveries: 13,
    weekendDates: ['2025-10-25', '2025-10-26', '2025-11-01', '2025-11-02'],
    holidays: [{ date: '2025-10-31', name: 'Reformation Day' }],
  });
  expect(receiver.calls()).toEqual([]);
});

test('equal counts are no reason to pass: each row has its own partner', async () => {
  const list = oldList();
  const swapped = list.map((row, i) => (i === 3 ? { ...row, contractRef: 'another' } : row));
  const found = await report('clean', swapped);
  expect(new Set(tell(found.rows))).toEqual(new Set(['DE-SN 2025-10-28 extra', 'another missing']));
  expect(found.passed).toBe(false);
});

test('finds each planted difference, and nothing else', async () => {
  const wrongHoliday = createReminderAcceptor({
    db: product.parts.pool,
    announcer: product.parts.announcer,
    calendars: calendarsWith({ 'DE-SN': { openings: [{ date: '2025-10-31', reason: 'forgotten' }] } }),
    timeoutMs: product.config.egress.timeoutMs,
  });
  const saxon = {
    endpoint: 'planted',
    jurisdiction: 'DE-SN',
    timeZone: undefined,
    deadlineAt: DEADLINE,
    renewalDate: '2025-11-30',
  };
  const wrong = await wrongHoliday.schedule(dueNow({ ...saxon, contractRef: 'wrong-holiday' }));
  await wrongHoliday.close();
  const extra = await schedule({ ...saxon, contractRef: 'extra', renewalDate: '2025-12-01' });
  for (const { deliveryId } of [wrong.reminder, extra]) {
    await until('it to be recorded', async () => {
      const ended = await product.parts.pool.query(
        'select from audit_record where delivery_id = $1 and shadow',
        [deliveryId],
      );
      return ended.rowCount === 1;
    });
  }
  const list = [
    ...oldList()
      .filter((row) => row.contractRef !== LIST_HOLE)
      // Written down as if summer time had not ended.
      .map((row) =>
        row.contractRef === DST_ROW ? { ...row, dueAt: new Date(row.dueAt.getTime() - 3_600_000) } : row,
      ),
    {
      contractRef: 'wrong-holiday',
      dueAt: new Date('2025-11-03T08:00:00Z'),
      deliveryId: undefined,
      line: 90,
    },
    { contractRef: 'nobody', dueAt: new Date('2025-10-30T08:00:00Z'), deliveryId: undefined, line: 91 },
  ];
  const found = await report('planted', list);
  const days = 3 * 86_400_000;
  expect(new Set(tell(found.rows))).toEqual(
    new Set([
      `${LIST_HOLE} extra`,
      'extra extra',
      `wrong-holiday different_time calendar ${-days}`,
      `wrong-holiday different_time expected ${-days}`,
      `${DST_ROW} different_time expected 3600000`,
      'nobody missing',
    ]),
  );
  expect(summarize(found.rows)).toMatchObject({
    rows: 42,
    matched: 37,
    missing: 1,
    extra: 2,
    different_time: 2,
  });
  expect(found.reasons).toEqual(['5 of 42 rows differ']);
});

test('without the old list, days on which nothing was due show nothing', async () => {
  expect((await report('clean', undefined)).reasons).toEqual([
    'nothing was due on 2025-11-07: without the old list these days show nothing',
  ]);
  const none = await report('silent', undefined);
  expect(none.reasons).toContain('no delivery was due in the period');
  const short = await reportShadow(
    { from: FROM, to: new Date('2025-10-30T00:00:00Z'), endpoint: 'clean', expected: undefined },
    { db: product.parts.pool, calendars, shadowAll: false },
  );
  expect(short.reasons).toEqual([
    'the period has 5 whole days (UTC), a full week is needed',
    'no holiday was seen on a day that would be open otherwise',
  ]);
});

test('goes live only on a passing report, or by force with a reason; both are in the audit trail', async () => {
  const options = { pool: product.parts.pool, calendars, shadowAll: false };
  const request = { from: FROM, to: TO, expected: undefined, force: false };
  await expect(goLive({ ...request, endpoint: 'silent' }, { actor: 'ann' }, options)).rejects.toMatchObject({
    code: 'transition_not_allowed',
    message: expect.stringContaining('no delivery was due in the period'),
  });
  await expect(
    goLive({ ...request, endpoint: 'silent', force: true }, { actor: 'ann' }, options),
  ).rejects.toMatchObject({ code: 'invalid_request' });
  const forced = await goLive(
    { ...request, endpoint: 'silent', force: true },
    { actor: 'ann', reason: 'nobody renews there' },
    options,
  );
  expect(forced.endpoint.mode).toBe('live');
  const passed = await goLive(
    { ...request, endpoint: 'clean', expected: oldList() },
    { actor: 'ann' },
    options,
  );
  const told = await product.parts.pool.query(
    `select actor, detail from operation where event = 'endpoint.went_live' order by operation_id`,
  );
  expect(told.rows).toMatchObject([
    { actor: 'ann', detail: { forced: true, reason: 'nobody renews there', report: { passed: false } } },
    { actor: 'ann', detail: { forced: false, report: { passed: true, summary: { matched: 39 } } } },
  ]);
  expect(passed.endpoint.mode).toBe('live');
  await expect(goLive({ ...request, endpoint: 'clean' }, { actor: 'ann' }, options)).rejects.toMatchObject({
    code: 'transition_not_allowed',
  });
});

test('after going live nothing is sent twice: only what is due from then on leaves', async () => {
  const waiting = await schedule({
    endpoint: 'clean',
    contractRef: 'waiting',
    renewalDate: daysFromToday(60),
    deadlineAt: undefined,
    jurisdiction: '24x7',
    timeZone: 'UTC',
  });
  await openRescheduler(product.parts, product.config).reschedule({
    reference: { reminderId: waiting.reminderId },
    renewalDate: daysFromToday(30),
    actor: 'test',
  });
  await until('the call', () => receiver.calls().length > 0);
  for (const { deliveryId } of clean) {
    await product.parts.announcer.announceNow({
      deliveryId,
      contractRef: undefined,
      attempt: 2,
      remainingMs: 0,
    });
  }
  await until('the wake-ups to be taken', async () => {
    const ready = await product.parts.publisher.countReady(`${product.broker.config.prefix}.v1.deliveries`);
    return ready === 0;
  });
  expect(receiver.calls().map((c) => c.deliveryId)).toEqual([waiting.deliveryId]);
});
