import { expect, test } from 'vitest';
import type { DueProof } from '../../../src/domain/calendar/calendars.ts';
import { compareProofs } from '../../../src/domain/calendar/compare-proofs.ts';
import type { DueRequest } from '../../../src/domain/calendar/due.ts';
import { calendarsWith } from './support.ts';

const POLAND: DueRequest = {
  renewalDate: '2027-01-23',
  noticePeriod: 'P30D',
  jurisdiction: 'PL',
  timeZone: undefined,
  deadline: undefined,
  deadlineAt: undefined,
};

function proofUnder(file: object | undefined, changes: Partial<DueRequest> = {}): DueProof {
  const files = file === undefined ? {} : { PL: file };
  return calendarsWith(files).computeDue({ ...POLAND, ...changes }).proof;
}

const EVE_OPEN = { openings: [{ date: '12-24', reason: 'the law of 2024' }] };

test('names a holiday that was added, and each further day that the new time passes over', () => {
  const causes = compareProofs(proofUnder(EVE_OPEN), proofUnder(undefined));
  expect(causes.map((c) => c.cause)).toEqual(['day_closed', 'day_closed', 'day_closed', 'day_closed']);
  expect(causes[0]?.note).toMatch(/^Thursday, 24 December 2026 is closed: public holiday, /);
});

test('names a day that is open again', () => {
  const [cause] = compareProofs(proofUnder(undefined), proofUnder(EVE_OPEN));
  expect(cause?.cause).toBe('day_open');
  expect(cause?.note).toMatch(
    /^2026-12-24 is open now; it was told before: Thursday, 24 December 2026 is closed/,
  );
});

test('names opening hours that changed', () => {
  const late = {
    hours: Object.fromEntries(
      ['monday', 'tuesday', 'wednesday', 'thursday', 'friday'].map((day) => [day, ['10:00-17:00']]),
    ),
  };
  expect(compareProofs(proofUnder(undefined), proofUnder(late))).toEqual([
    {
      cause: 'opening_hours',
      note: 'Monday, 28 December 2026 opens at 10:00; that is the first business hour (before: Monday, 28 December 2026 opens at 09:00; that is the first business hour)',
    },
  ]);
});

test('names business days that are counted differently', () => {
  const business = { noticePeriod: 'P20B' };
  const [cause, ...others] = compareProofs(proofUnder(EVE_OPEN, business), proofUnder(undefined, business));
  expect(cause?.cause).toBe('day_count');
  expect(others).toEqual([]);
});

test('names the deadline when only that has moved', () => {
  const business = { noticePeriod: 'P60D', deadline: 'P20B' };
  expect(
    compareProofs(proofUnder(EVE_OPEN, business), proofUnder(undefined, business)).map((c) => c.cause),
  ).toEqual(['deadline']);
});

test('names a zone whose offset changed by law, with both versions of the data', () => {
  const before = proofUnder(undefined);
  const after: DueProof = {
    ...before,
    tz_version: '2027a',
    due_at: '2026-12-28T07:00:00.000Z',
    steps: before.steps.map((step) => ({ ...step, local: step.local.replace('+01:00', '+02:00') })),
  };
  expect(compareProofs({ ...before, tz_version: '2026b' }, after)).toEqual([
    {
      cause: 'time_zone_data',
      note: 'Europe/Warsaw is at +02:00 on 2026-12-28, it was thought to be at +01:00 (tz data 2026b, now 2027a)',
    },
  ]);
});

test('names a calendar that moved to another zone', () => {
  expect(compareProofs(proofUnder(undefined), proofUnder({ time_zone: 'Europe/Helsinki' }))[0]).toEqual({
    cause: 'time_zone',
    note: 'the time zone was Europe/Warsaw, now it is Europe/Helsinki',
  });
});
