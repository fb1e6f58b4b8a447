import { describe, expect, it } from 'vitest';

import { createCalendar } from '../../../src/domain/calendar/calendar.ts';
import { isoDate } from '../../../src/domain/calendar/dates.ts';
import { createHolidayBook } from '../../../src/domain/calendar/holidays.ts';
import { formatSpan } from '../../../src/domain/calendar/hours.ts';
import { requireHolidays } from '../../../src/domain/calendar/require-holidays.ts';
import { calendarsWith, everyDay, refusalOf } from './support.ts';

const book = createHolidayBook();

function closings(code: string, from: string, until: string): string[] {
  return book
    .listHolidays(code, Number(from.slice(0, 4)))
    .filter((holiday) => isoDate(holiday.day) >= from && isoDate(holiday.day) <= until)
    .map((holiday) => `${isoDate(holiday.day)} ${formatSpan(holiday.closed)}`);
}

describe('public holidays', () => {
  it('close only their hours where they are part of a day', () => {
    expect(closings('IS', '2027-12-24', '2027-12-24')).toEqual(['2027-12-24 13:00-24:00']);
    const always = { IS: { hours: everyDay('00:00-24:00') } };
    const iceland = { jurisdiction: 'IS', renewalDate: '2027-12-24', noticePeriod: 'P0D' };
    expect(calendarsWith(always).computeDue(iceland).dueAt.toISOString()).toBe('2027-12-24T00:00:00.000Z');
    const afternoons = { IS: { hours: everyDay('14:00-18:00') } };
    const due = calendarsWith(afternoons).computeDue(iceland);
    expect(due.dueAt.toISOString()).toBe('2027-12-27T14:00:00.000Z');
    expect(due.steps[2]?.note).toContain('closed: public holiday, Christmas Eve from 13:00');
  });

  it('that begin at sunset close civil days, not the evening before', () => {
    expect(closings('EG', '2027-03-08', '2027-03-12')).toEqual([
      '2027-03-09 00:00-24:00',
      '2027-03-10 00:00-24:00',
      '2027-03-11 00:00-24:00',
    ]);
    expect(closings('IL', '2027-04-21', '2027-04-23')).toEqual(['2027-04-22 00:00-24:00']);
  });

  it('that end at a set hour close no more than that', () => {
    expect(closings('TR', '2027-03-08', '2027-03-12')).toEqual([
      '2027-03-09 00:00-24:00',
      '2027-03-10 00:00-24:00',
      '2027-03-11 00:00-24:00',
      '2027-03-12 00:00-12:00',
    ]);
  });

  it('are found in the year they are kept in, also when they belong to the next', () => {
    expect(closings('US', '2027-12-20', '2027-12-31')).toContain('2027-12-31 00:00-24:00');
  });

  it('of other types do not close: Mother’s Day and bank holidays', () => {
    expect(closings('DE', '2027-05-09', '2027-05-09')).toEqual([]);
  });

  it('must be known for every year that is touched, unless the calendar file does without', () => {
    const israel = createCalendar('IL', { file: undefined, book });
    if (israel === undefined) throw new Error('IL is unknown here');
    expect(refusalOf(() => requireHolidays(israel, [2027, 2101], book))).toMatchObject({
      code: 'unknown_jurisdiction',
      path: '/jurisdiction',
    });
    const calendars = calendarsWith({ DE: { holidays_from: 'none' } });
    expect(calendars.describe('DE', { year: 2027 }).holidays).toEqual([]);
    const due = calendars.computeDue({ jurisdiction: 'DE', renewalDate: '2027-01-01', noticePeriod: 'P0D' });
    expect(due.dueAt.toISOString()).toBe('2027-01-01T08:00:00.000Z');
  });
});

describe('a description', () => {
  it.each([1969, 2076, 2027.5, Number.NaN])(
    'is refused for the year %d, whose holidays are not known',
    (year) => {
      expect(refusalOf(() => calendarsWith().describe('DE', { year }))).toMatchObject({ path: '/year' });
    },
  );
});

describe('a code', () => {
  it('that the library only seems to know is unknown', () => {
    for (const code of ['DE-ZZ', 'DE-BY-ZZ', 'XX', 'CK-AITUTAKI', 'toString']) {
      expect(book.findJurisdiction(code), code).toBeUndefined();
    }
    expect(book.findJurisdiction('US-LA-NO')).toEqual({
      code: 'US-LA-NO',
      country: 'US',
      timeZones: ['America/Chicago'],
    });
  });
});
