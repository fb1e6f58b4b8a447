import { describe, expect, it } from 'vitest';

import { firstBusinessInstant } from '../../../src/domain/calendar/business-hours.ts';
import { createCalendar } from '../../../src/domain/calendar/calendar.ts';
import { parseCalendarFile } from '../../../src/domain/calendar/calendar-file.ts';
import { explainSteps } from '../../../src/domain/calendar/calendars.ts';
import type { DueRequest } from '../../../src/domain/calendar/due.ts';
import { createHolidayBook } from '../../../src/domain/calendar/holidays.ts';
import { findZone } from '../../../src/domain/calendar/zone.ts';
import { calendarsWith, everyDay, refusalOf } from './support.ts';

function dueAt(request: DueRequest, files: Record<string, unknown> = {}): string {
  return calendarsWith(files).computeDue(request).dueAt.toISOString().replace('.000Z', 'Z');
}

/** Rounds one instant forward in a calendar that a file describes. */
function round(instant: string, where: { code: string; file?: unknown; zone: string }): string | undefined {
  const file = where.file === undefined ? undefined : parseCalendarFile(where.code, where.file);
  const calendar = createCalendar(where.code, { file, book: createHolidayBook() });
  const zone = findZone(where.zone);
  if (calendar === undefined || zone === undefined) throw new Error('the test names no calendar or zone');
  return firstBusinessInstant(calendar, zone, new Date(instant))?.toISOString();
}

describe('faults that others met', () => {
  it('B001: records the tz data version, so that a due date made with old data can be found', () => {
    const { dueAt, proof } = calendarsWith().computeDue({
      renewalDate: '2027-07-15',
      noticePeriod: 'P30D',
      jurisdiction: 'MA',
      timeZone: 'Africa/Casablanca',
    });
    expect(proof.tz_version).toBe(process.versions.tz);
    expect(proof.steps.find((step) => step.rule === 'opening')?.local).toMatch(/^2027-06-15T09:00:00/);
    // 08:00Z with tz data up to 2026b, 09:00Z from 2026c on.
    expect(['2027-06-15T08:00:00.000Z', '2027-06-15T09:00:00.000Z']).toContain(dueAt.toISOString());
  });

  it('B003: takes the first of two equal local times', () => {
    const late = { holidays_from: 'none', hours: { ...everyDay('00:00-24:00'), sunday: ['01:30-24:00'] } };
    const request: DueRequest = {
      renewalDate: '2027-11-30',
      noticePeriod: 'P30D',
      jurisdiction: 'late-sundays',
      timeZone: 'Europe/London',
    };
    expect(dueAt(request, { 'late-sundays': late })).toBe('2027-10-31T00:30:00Z');
    const told = explainSteps(calendarsWith({ 'late-sundays': late }).computeDue(request));
    expect(told.join('\n')).toContain('shows 01:30 twice; the first one counts');
  });

  it('B005: counts calendar days, not hours, across a clock change', () => {
    expect(
      dueAt({
        renewalDate: '2027-04-08',
        noticePeriod: 'P30D',
        jurisdiction: '24x7',
        timeZone: 'America/New_York',
      }),
    ).toBe('2027-03-09T05:00:00Z');
  });

  it('B007: gets past a date that has no midnight', () => {
    const request = { renewalDate: '2027-05-30', noticePeriod: 'P30D', jurisdiction: 'EG' };
    expect(dueAt(request)).toBe('2027-05-02T06:00:00Z');
    expect(explainSteps(calendarsWith().computeDue(request))[1]).toBe(
      '2027-04-30T01:00:00+03:00  30 days before 2027-05-30 is Friday, 30 April 2027. The clock goes forward over 00:00, so the first instant after the gap counts.',
    );
  });

  it('B009: keeps leap days where the calendar has them', () => {
    const us = { noticePeriod: 'P12M', jurisdiction: 'US', timeZone: 'America/New_York' };
    expect(dueAt({ ...us, renewalDate: '2028-02-29' })).toBe('2027-03-01T14:00:00Z');
    expect(dueAt({ ...us, renewalDate: '2029-02-28' })).toBe('2028-02-28T14:00:00Z');
    expect(refusalOf(() => dueAt({ ...us, renewalDate: '2027-02-29' }))).toMatchObject({
      code: 'invalid_request',
      path: '/renewal_date',
    });
  });

  it('B011: leaves a notice in days off the month end and knows the holidays of each state', () => {
    const request = { renewalDate: '2027-12-31', noticePeriod: 'P60D' };
    expect(dueAt({ ...request, jurisdiction: 'DE-BE' })).toBe('2027-11-01T08:00:00Z');
    expect(dueAt({ ...request, jurisdiction: 'DE-BY' })).toBe('2027-11-02T08:00:00Z');
  });

  it('B013: subtracts months across New Year', () => {
    expect(dueAt({ renewalDate: '2027-01-15', noticePeriod: 'P3M', jurisdiction: 'FR' })).toBe(
      '2026-10-15T07:00:00Z',
    );
  });

  it.each([
    ['P5B', '2027-08-09T14:00:00Z'],
    ['P10B', '2027-08-02T14:00:00Z'],
    ['P15B', '2027-07-26T14:00:00Z'],
  ])('B015: counts %s back from a Sunday to %s', (noticePeriod, expected) => {
    const request = { renewalDate: '2027-08-15', jurisdiction: 'US', timeZone: 'America/Chicago' };
    expect(dueAt({ ...request, noticePeriod })).toBe(expected);
  });

  it('B017: has the closing minute outside, to the millisecond', () => {
    const berlin = { code: 'DE', zone: 'Europe/Berlin' };
    expect(round('2027-08-16T14:59:59.999Z', berlin)).toBe('2027-08-16T14:59:59.999Z');
    expect(round('2027-08-16T15:00:00.000Z', berlin)).toBe('2027-08-17T07:00:00.000Z');
    expect(round('2027-08-16T15:00:00.001Z', berlin)).toBe('2027-08-17T07:00:00.000Z');
  });

  it('B017: reads 00:00-24:00 as always open and refuses hours past midnight with what to write', () => {
    const always = {
      code: 'DE',
      zone: 'Europe/Berlin',
      file: { holidays_from: 'none', hours: everyDay('00:00-24:00') },
    };
    expect(round('2027-08-16T21:59:59.999Z', always)).toBe('2027-08-16T21:59:59.999Z');
    expect(round('2027-08-16T22:00:00.000Z', always)).toBe('2027-08-16T22:00:00.000Z');
    expect(() => parseCalendarFile('DE', { hours: { monday: ['22:00-02:00'] } })).toThrow(
      'config/calendars/DE.json: /hours/monday/0: "22:00-02:00" goes past midnight: write "22:00-24:00" here and "00:00-02:00" on the next day',
    );
  });

  it('B019: closes two substitute days for two holidays on one weekend', () => {
    expect(dueAt({ renewalDate: '2028-01-26', noticePeriod: 'P30D', jurisdiction: 'GB-ENG' })).toBe(
      '2027-12-29T09:00:00Z',
    );
  });

  it('B021: closes 31 December for a New Year of the next year', () => {
    const request = { renewalDate: '2028-01-30', noticePeriod: 'P30D', jurisdiction: 'US' };
    expect(dueAt({ ...request, timeZone: 'America/New_York' })).toBe('2028-01-03T14:00:00Z');
  });

  it('B021: opens a working Saturday that the calendar file lists', () => {
    const request = {
      renewalDate: '2027-11-08',
      noticePeriod: 'P30D',
      jurisdiction: 'CN',
      timeZone: 'Asia/Shanghai',
    };
    const openings = [{ date: '2027-10-09', reason: 'working Saturday' }];
    expect(dueAt(request, { CN: { openings } })).toBe('2027-10-09T01:00:00Z');
    expect(dueAt(request)).toBe('2027-10-11T01:00:00Z');
  });

  it('B023: closes the substitute day, and for those who work on Saturdays the day itself too', () => {
    const request = {
      renewalDate: '2027-03-10',
      noticePeriod: 'P30D',
      jurisdiction: 'NZ',
      timeZone: 'Pacific/Auckland',
    };
    expect(dueAt(request)).toBe('2027-02-08T20:00:00Z');
    const saturdays = { NZ: { hours: { saturday: ['09:00-17:00'] } } };
    expect(dueAt({ ...request, renewalDate: '2027-03-08' }, saturdays)).toBe('2027-02-08T20:00:00Z');
    expect(dueAt({ ...request, renewalDate: '2027-03-15' }, saturdays)).toBe('2027-02-12T20:00:00Z');
  });

  it("B025: looks a holiday up by the customer's local date, not by the UTC or the default zone's", () => {
    const late = { hours: Object.fromEntries(['monday', 'friday'].map((day) => [day, ['09:00-22:00']])) };
    // 20:00 on 1 January in Honolulu is 2 January in UTC and in New York.
    expect(round('2027-01-02T06:00:00Z', { code: 'US', file: late, zone: 'Pacific/Honolulu' })).toBe(
      '2027-01-04T19:00:00.000Z',
    );
  });

  it('B027: knows that Christmas Eve is a holiday in Poland since 2025, and a file can add the next new law', () => {
    const request = { renewalDate: '2027-01-23', noticePeriod: 'P30D', jurisdiction: 'PL' };
    expect(dueAt(request)).toBe('2026-12-28T08:00:00Z');
    const closures = [{ date: '2026-12-28', reason: 'announced in December' }];
    expect(dueAt(request, { PL: { closures } })).toBe('2026-12-29T08:00:00Z');
  });

  it('B029: gets past a date that a country skipped', () => {
    expect(
      dueAt({
        renewalDate: '2012-01-29',
        noticePeriod: 'P30D',
        jurisdiction: '24x7',
        timeZone: 'Pacific/Apia',
      }),
    ).toBe('2011-12-30T10:00:00Z');
  });

  it.each([
    '20',
    '2027',
    '2027-2-9',
    '20270209',
    '2027-W05-1',
    '2027-02-30',
    '2027-02-09T10:00:00+05:45',
    ' 2027-02-09',
    '2027-02-09\n',
    '٢٠٢٧-02-09',
    1770595200,
  ])('B031: refuses %j as a renewal date and names the field', (renewalDate) => {
    const text = renewalDate as string; // a number gets here only past the schema of an entrance
    expect(
      refusalOf(() => dueAt({ renewalDate: text, noticePeriod: 'P30D', jurisdiction: 'DE' })),
    ).toMatchObject({
      code: 'invalid_request',
      path: '/renewal_date',
    });
  });

  it('B035: computes a due date that is past, with its deadline, and leaves the judgement to the caller', () => {
    const due = calendarsWith().computeDue({
      renewalDate: '2026-12-20',
      noticePeriod: 'P30D',
      jurisdiction: 'DE',
      deadline: 'P10D',
    });
    expect(due.dueAt.toISOString()).toBe('2026-11-20T08:00:00.000Z');
    expect(due.deadlineAt.toISOString()).toBe('2026-12-09T23:00:00.000Z');
  });
});
