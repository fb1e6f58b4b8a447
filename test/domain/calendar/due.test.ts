import { describe, expect, it } from 'vitest';

import { createCalendars, explainSteps } from '../../../src/domain/calendar/calendars.ts';
import type { DueRequest } from '../../../src/domain/calendar/due.ts';
import { calendarsWith, refusalOf, shipped } from './support.ts';

const BAVARIA: DueRequest = { renewalDate: '2027-03-31', noticePeriod: 'P1M', jurisdiction: 'DE-BY' };

function refusal(change: Partial<DueRequest>, files: Record<string, unknown> = {}) {
  return refusalOf(() => calendarsWith(files).computeDue({ ...BAVARIA, ...change }));
}

describe('the steps', () => {
  it('tell the way from the renewal date to the due date as a person would', () => {
    expect(explainSteps(calendarsWith().computeDue({ ...BAVARIA, deadline: 'P14D' }))).toEqual([
      '2027-03-31T00:00:00+02:00  The contract renews on Wednesday, 31 March 2027 (Europe/Berlin).',
      '2027-02-28T00:00:00+01:00  1 month before 2027-03-31 is Sunday, 28 February 2027 (that month has no day 31, so its last one is taken).',
      '2027-02-28T00:00:00+01:00  Sunday, 28 February 2027 is closed: weekend.',
      '2027-03-01T09:00:00+01:00  Monday, 1 March 2027 opens at 09:00; that is the first business hour.',
      '2027-03-17T00:00:00+01:00  The deadline is the start of that day: 14 days before 2027-03-31 is Wednesday, 17 March 2027.',
    ]);
  });

  it('say when nothing had to be rounded', () => {
    const due = calendarsWith().computeDue({ ...BAVARIA, jurisdiction: '24x7', timeZone: 'UTC' });
    expect(due.steps.at(-2)).toEqual({
      rule: 'within_hours',
      local: '2027-02-28T00:00:00+00:00',
      instant: '2027-02-28T00:00:00.000Z',
      note: 'Sunday, 28 February 2027 is open 00:00-24:00; 00:00 is inside, so nothing is rounded.',
    });
  });

  it('name holidays and the reasons of the calendar file', () => {
    const files = { 'DE-BY': { closures: [{ date: '2027-05-07', reason: 'Bridge day' }] } };
    const due = calendarsWith(files).computeDue({
      ...BAVARIA,
      renewalDate: '2027-06-05',
      noticePeriod: 'P30D',
    });
    expect(due.steps.filter((step) => step.rule === 'closed').map((step) => step.note)).toEqual([
      'Thursday, 6 May 2027 is closed: public holiday, Ascension Day.',
      'Friday, 7 May 2027 is closed: Bridge day.',
      'Saturday, 8 May 2027 is closed: weekend.',
      'Sunday, 9 May 2027 is closed: weekend.',
    ]);
    expect(due.dueAt.toISOString()).toBe('2027-05-10T07:00:00.000Z');
  });
});

describe('the proof', () => {
  it('holds everything that is needed to compute the date again', () => {
    const request = { ...BAVARIA, deadline: 'P14D' };
    const { proof, steps } = calendarsWith().computeDue(request);
    expect(proof).toEqual({
      inputs: { renewal_date: '2027-03-31', notice_period: 'P1M', jurisdiction: 'DE-BY', deadline: 'P14D' },
      rule: 'renewal date minus notice period, at local midnight, rounded forward to the next business hour',
      time_zone: 'Europe/Berlin',
      due_at: '2027-03-01T08:00:00.000Z',
      deadline_at: '2027-03-16T23:00:00.000Z',
      steps,
      calendar_code: 'DE-BY',
      calendar_years: [2027],
      calendar_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      holiday_library: 'date-holidays@3.37.0',
      tz_version: process.versions.tz,
    });
    expect(calendarsWith().computeDue(request).proof).toEqual(proof);
    expect(JSON.parse(JSON.stringify(proof))).toEqual(proof);
  });

  it('has another hash when anything that can decide is different, and the same when nothing is', () => {
    const hash = (file: unknown, change: Partial<DueRequest> = {}) =>
      calendarsWith(file === undefined ? {} : { 'DE-BY': file }).computeDue({ ...BAVARIA, ...change }).proof
        .calendar_sha256;
    const hashes = [
      hash(undefined),
      hash({ hours: { monday: ['08:00-17:00'] } }),
      hash({ closures: [{ date: '2027-08-02', reason: 'Move' }] }),
      hash({ closures: [{ date: '08-02', reason: 'Move' }] }),
      hash({ half_days: [{ date: '2027-08-02', hours: ['09:00-12:00'], reason: 'Move' }] }),
      hash({ holidays_from: 'DE-BE' }),
      hash(undefined, { timeZone: 'Europe/Vienna' }),
      hash(undefined, { renewalDate: '2028-03-31' }),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hash({ name: 'The same by another name' })).toBe(hashes[0]);
    expect(hash({ closures: [{ date: '2031-08-02', reason: 'Another year' }] })).toBe(hashes[0]);
    expect(hash(undefined, { noticePeriod: 'P30D' })).toBe(hashes[0]);
  });

  it('is the hash that a description of that year and zone shows', () => {
    const { proof } = calendarsWith().computeDue(BAVARIA);
    expect(calendarsWith().describe('DE-BY', { year: 2027 }).calendar_sha256).toBe(proof.calendar_sha256);
  });
});

describe('the deadline', () => {
  it('is the start of the renewal date where none is given', () => {
    expect(calendarsWith().computeDue(BAVARIA).deadlineAt.toISOString()).toBe('2027-03-30T22:00:00.000Z');
  });

  it('is the given instant, which is not judged here', () => {
    const deadlineAt = new Date('2020-01-01T12:00:00Z');
    expect(calendarsWith().computeDue({ ...BAVARIA, deadlineAt }).deadlineAt).toEqual(deadlineAt);
  });

  it('may be counted in business days', () => {
    const due = calendarsWith().computeDue({ ...BAVARIA, deadline: 'P3B' });
    expect(due.deadlineAt.toISOString()).toBe('2027-03-23T23:00:00.000Z'); // Good Friday and Easter Monday between
  });
});

describe('a refusal', () => {
  it('asks for the zone of a country that has several', () => {
    expect(refusal({ jurisdiction: 'US' })).toMatchObject({ code: 'time_zone_required', path: '/time_zone' });
    expect(refusal({ jurisdiction: 'US' }).detail).toContain('29 time zones');
    expect(refusal({ jurisdiction: '24x7' })).toMatchObject({ code: 'time_zone_required' });
    expect(calendarsWith().computeDue({ ...BAVARIA, jurisdiction: 'US-CA' }).timeZone).toBe(
      'America/Los_Angeles',
    );
    const files = { US: { time_zone: 'America/Denver' } };
    expect(calendarsWith(files).computeDue({ ...BAVARIA, jurisdiction: 'US' }).timeZone).toBe(
      'America/Denver',
    );
    const given = { ...BAVARIA, jurisdiction: 'US', timeZone: 'America/Chicago' };
    expect(calendarsWith(files).computeDue(given).timeZone).toBe('America/Chicago');
  });

  it.each([
    ['XX', undefined],
    ['DE-XX', undefined],
    ['DE-BY-XX', undefined],
    ['CK-Aitutaki', undefined], // listed by the library, which then answers with the holidays of CK
    ['de-by', 'Did you mean "DE-BY"?'],
    ['GER', undefined],
    ['', undefined],
    ['../../etc/passwd', undefined],
    ['__proto__', undefined],
  ])('says that %j is no jurisdiction', (jurisdiction, hint) => {
    expect(refusal({ jurisdiction })).toMatchObject({ code: 'unknown_jurisdiction', path: '/jurisdiction' });
    if (hint !== undefined) expect(refusal({ jurisdiction }).detail).toContain(hint);
  });

  it.each(['Europe/Berlim', '+05:00', 'Mars/Olympus', '', 'Europe/Berlin '])(
    'says that %j is no time zone',
    (timeZone) => {
      expect(refusal({ timeZone })).toMatchObject({ code: 'invalid_request', path: '/time_zone' });
    },
  );

  it('suggests the zone that was meant', () => {
    expect(refusal({ timeZone: 'Europe/Berlim' }).detail).toContain('Did you mean "Europe/Berlin"?');
  });

  it.each([
    ['PT24H', 'holds hours'],
    ['P1DT1H', 'holds hours'],
    ['P', 'is no period'],
    ['30', 'is no period'],
    ['p30d', 'is no period'],
    ['P-30D', 'is no period'],
    ['P1.5M', 'is no period'],
    ['P15D1M', 'is no period'],
    ['P1M10B', 'is no period'],
    ['P30D ', 'is no period'],
    ['P11Y', 'longer than ten years'],
    ['P999999D', 'longer than ten years'],
    ['P9Y3000D', 'longer than ten years'],
    ['P1001B', 'more than 1000 business days'],
  ])('names the notice period or the deadline that is %j', (period, reason) => {
    expect(refusal({ noticePeriod: period })).toMatchObject({
      code: 'invalid_request',
      path: '/notice_period',
    });
    expect(refusal({ noticePeriod: period }).detail).toContain(reason);
    expect(refusal({ deadline: period })).toMatchObject({ code: 'invalid_request', path: '/deadline' });
  });

  it('takes one kind of deadline only, and a real instant', () => {
    expect(refusal({ deadline: 'P1D', deadlineAt: new Date(0) })).toMatchObject({ path: '/deadline' });
    expect(refusal({ deadlineAt: new Date(Number.NaN) })).toMatchObject({ path: '/deadline_at' });
  });

  it('keeps to the years whose holidays are known', () => {
    expect(refusal({ renewalDate: '1969-12-31' })).toMatchObject({ path: '/renewal_date' });
    expect(refusal({ renewalDate: '2076-01-01' })).toMatchObject({ path: '/renewal_date' });
    expect(calendarsWith().computeDue({ ...BAVARIA, renewalDate: '2075-12-31' }).dueAt).toBeInstanceOf(Date);
  });

  it('comes instead of an endless search in a calendar that never opens', () => {
    const week = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
    const never = { hours: Object.fromEntries(week.map((day) => [day, []])) };
    expect(refusal({}, { 'DE-BY': never })).toMatchObject({ path: '/jurisdiction' });
    expect(refusal({ noticePeriod: 'P1B' }, { 'DE-BY': never })).toMatchObject({ path: '/jurisdiction' });
    const inTheGap = { hours: { ...never.hours, sunday: ['02:10-02:50'] } };
    expect(
      calendarsWith({ 'DE-BY': inTheGap }).computeDue({
        ...BAVARIA,
        renewalDate: '2027-03-28',
        noticePeriod: 'P0D',
      }).dueAt,
    ).toEqual(new Date('2027-04-04T00:10:00Z'));
  });
});

describe('calendars', () => {
  it('of one own are used by their name', () => {
    const calendars = calendarsWith({ 'acme-de': shipped('acme-de') });
    const due = calendars.computeDue({ ...BAVARIA, jurisdiction: 'acme-de' });
    expect(due.dueAt.toISOString()).toBe('2027-03-01T07:00:00.000Z');
    expect(due.proof.calendar_code).toBe('acme-de');
    // Christmas Eve closes at noon, the Saturday and Sunday after are holidays, and the year ends on the 30th.
    expect(calendars.describe('acme-de', { year: 2027 }).exceptions).toEqual([
      { date: '12-24', kind: 'short', hours: ['08:00-12:00'], reason: 'Christmas Eve' },
      { date: '12-31', kind: 'closed', hours: [], reason: "New Year's Eve" },
    ]);
  });

  it('are read anew when their file has changed', () => {
    let file: unknown = { hours: { monday: ['10:00-12:00'] } };
    const calendars = createCalendars({
      source: () => file,
      tzVersion: '2025c',
      holidayLibraryVersion: '3.37.0',
    });
    expect(calendars.computeDue(BAVARIA).dueAt.toISOString()).toBe('2027-03-01T09:00:00.000Z');
    file = { closures: [{ date: '2027-03-01', reason: 'Announced late' }] };
    expect(calendars.computeDue(BAVARIA).dueAt.toISOString()).toBe('2027-03-02T08:00:00.000Z');
    file = undefined;
    expect(calendars.computeDue(BAVARIA).dueAt.toISOString()).toBe('2027-03-01T08:00:00.000Z');
  });

  it('are described with zones, hours, holidays and sources', () => {
    const egypt = calendarsWith().describe('EG', { year: 2027 });
    expect(egypt).toMatchObject({
      calendar_code: 'EG',
      time_zone: 'Africa/Cairo',
      time_zones: ['Africa/Cairo'],
      weekend: ['friday', 'saturday'],
      year: 2027,
    });
    expect(egypt.opening_hours).toMatchObject({ friday: [], sunday: ['09:00-17:00'] });
    expect(egypt.holidays).toContainEqual({ date: '2027-05-01', hours: '00:00-24:00', name: 'Labour Day' });
    expect(egypt.sources).toContain('date-holidays@3.37.0: holidays of EG');
    expect(calendarsWith().describe('US')).toMatchObject({ time_zone: null, year: null, holidays: [] });
    expect(calendarsWith().describe('IN').weekend).toEqual(['sunday']);
  });

  it('answer ten thousand renewals over twenty jurisdictions', { timeout: 30_000 }, () => {
    const codes = 'DE-BY US-CA GB-ENG FR EG IN JP PL NO SE IT AT CH-ZH NL BE DK FI TR KR ZA'.split(' ');
    const periods = ['P30D', 'P1M', 'P10B', 'P2W', 'P1M15D'];
    const calendars = calendarsWith();
    for (let index = 0; index < 10_000; index += 1) {
      const renewalDate = new Date(Date.UTC(2026, 0, 1 + ((index * 97) % 3000))).toISOString().slice(0, 10);
      const due = calendars.computeDue({
        renewalDate,
        noticePeriod: periods[index % periods.length] ?? 'P30D',
        jurisdiction: codes[index % codes.length] ?? 'DE',
      });
      expect(due.dueAt.getTime()).toBeLessThan(Date.parse(renewalDate));
    }
  });
});
