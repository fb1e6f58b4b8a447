import { readdirSync, readFileSync } from 'node:fs';

import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';

import { CalendarFileError, parseCalendarFile } from '../../../src/domain/calendar/calendar-file.ts';
import { calendarsWith, everyDay } from './support.ts';

const DIRECTORY = new URL('../../../config/calendars/', import.meta.url);
const json = (name: string): unknown => JSON.parse(readFileSync(new URL(name, DIRECTORY), 'utf8'));
const matchesSchema = new Ajv().compile(json('calendar.schema.json') as object);

function faultsOf(content: unknown, code = 'DE-BY'): string[] {
  try {
    parseCalendarFile(code, content);
    return [];
  } catch (error) {
    if (!(error instanceof CalendarFileError)) throw error;
    return error.faults.map((fault) => `${fault.path}: ${fault.message}`);
  }
}

describe('a calendar file', () => {
  it.each(readdirSync(DIRECTORY).filter((name) => name !== 'calendar.schema.json'))(
    'that ships, %s, is right by schema and by reader, and can be used',
    (name) => {
      const code = name.replace('.json', '');
      expect(matchesSchema(json(name)) || matchesSchema.errors).toBe(true);
      expect(faultsOf(json(name), code)).toEqual([]);
      expect(calendarsWith({ [code]: json(name) }).describe(code, { year: 2027 }).calendar_code).toBe(code);
    },
  );

  const wrong: [string, unknown, string][] = [
    ['no object', [], ': must be an object with '],
    ['a mistyped key', { holiday_from: 'DE' }, '/holiday_from: is not known. Did you mean "holidays_from"?'],
    [
      'a mistyped weekday',
      { hours: { mondays: [] } },
      '/hours/mondays: is not known. Did you mean "monday"?',
    ],
    ['hours that are no list', { hours: { monday: '09:00-17:00' } }, '/hours/monday: must be a list in [ ]'],
    [
      'loose hours',
      { hours: { monday: ['9-17'] } },
      '/hours/monday/0: "9-17" is no span of hours: write it like "09:00-17:00"',
    ],
    [
      'an hour that no day has',
      { hours: { monday: ['09:00-25:00'] } },
      '/hours/monday/0: "09:00-25:00" holds a time that no day has: hours go from 00:00 to 24:00',
    ],
    [
      'a bad holidays_from',
      { holidays_from: 'Bavaria' },
      '/holidays_from: "Bavaria" is no jurisdiction: write one like "DE-BY", or "none"',
    ],
    [
      'a closure without reason',
      { closures: [{ date: '2027-05-07' }] },
      '/closures/0/reason: is missing: an auditor will ask why this day is different',
    ],
    [
      'a bad date',
      { closures: [{ date: '7 May', reason: 'x' }] },
      '/closures/0/date: "7 May" is no date: write "2027-12-24", or "12-24" for every year',
    ],
    [
      'a half-day without hours',
      { half_days: [{ date: '12-24', reason: 'x' }] },
      '/half_days/0/hours: is missing, like ["09:00-12:00"]',
    ],
    ['a name that is no text', { name: 7 }, '/name: must be text'],
    ['a source that is no text', { sources: [7] }, '/sources/0: must be text: where these facts come from'],
    [
      'an empty opening',
      { openings: [{ date: '12-24', hours: [], reason: 'x' }] },
      '/openings/0/hours: is empty: list the day under closures instead',
    ],
    [
      'hours past midnight',
      { hours: { friday: ['09:00-17:00', '22:00-02:00'] } },
      '/hours/friday/1: "22:00-02:00" goes past midnight: write "22:00-24:00" here and "00:00-02:00" on the next day',
    ],
  ];

  it.each(wrong.filter(([what]) => !what.includes('past midnight')))(
    'with %s is refused by path, with what to do, and by the schema too',
    (_, content, fault) => {
      expect(faultsOf(content)[0]).toContain(fault);
      expect(matchesSchema(content)).toBe(false);
    },
  );

  const beyondTheSchema: [string, unknown, string][] = [
    [
      'an end at 00:00',
      { hours: { monday: ['18:00-00:00'] } },
      '/hours/monday/0: "18:00-00:00" goes past midnight: write "18:00-24:00"',
    ],
    ['an empty span', { hours: { monday: ['09:00-09:00'] } }, '/hours/monday/0: "09:00-09:00" is empty'],
    [
      'overlapping spans',
      { hours: { monday: ['09:00-12:00', '11:00-17:00'] } },
      '/hours/monday/1: "11:00-17:00" overlaps',
    ],
    [
      'a date twice',
      { closures: [{ date: '12-24', reason: 'x' }], openings: [{ date: '12-24', reason: 'y' }] },
      '/openings/0/date: "12-24" is listed before',
    ],
    [
      'a day that no year has',
      { closures: [{ date: '2027-02-29', reason: 'x' }] },
      '/closures/0/date: "2027-02-29" is no date',
    ],
    [
      'an unknown zone',
      { time_zone: 'Europe/Berlim' },
      '/time_zone: "Europe/Berlim" is no IANA time zone: write one like "Europe/Berlin". Did you mean "Europe/Berlin"?',
    ],
    [
      'hours past midnight',
      { hours: { friday: ['09:00-17:00', '22:00-02:00'] } },
      '/hours/friday/1: "22:00-02:00" goes past midnight: write "22:00-24:00" here and "00:00-02:00" on the next day',
    ],
  ];

  it.each(beyondTheSchema)('with %s is refused by path', (_, content, fault) => {
    expect(faultsOf(content)[0]).toContain(fault);
  });

  it('names itself and every fault at once', () => {
    const content = { hours: { monday: ['9-17'] }, closures: [{ date: 'x', reason: 'x' }] };
    expect(() => parseCalendarFile('acme-de', content)).toThrow(
      [
        'config/calendars/acme-de.json: /holidays_from: is missing: name the jurisdiction whose public holidays count, like "DE-BY", or "none"',
        'config/calendars/acme-de.json: /hours/monday/0: "9-17" is no span of hours: write it like "09:00-17:00"',
        'config/calendars/acme-de.json: /closures/0/date: "x" is no date: write "2027-12-24", or "12-24" for every year',
      ].join('\n'),
    );
  });

  it('must say when it is open where no jurisdiction does', () => {
    for (const code of ['acme', 'ZZ']) {
      expect(() => calendarsWith({ [code]: { holidays_from: 'none' } }).describe(code)).toThrow(
        `config/calendars/${code}.json: /hours: no known jurisdiction says which days are a weekend`,
      );
      const file = { holidays_from: 'none', hours: everyDay() };
      expect(calendarsWith({ [code]: file }).describe(code).weekend).toEqual([]);
    }
  });

  it('must be named after a code', () => {
    expect(faultsOf({ holidays_from: 'DE' }, 'Acme GmbH')[0]).toContain('the file must be named after');
  });

  it('cannot borrow the holidays of a jurisdiction that the library does not know', () => {
    const calendars = calendarsWith({ acme: { holidays_from: 'DE-ZZ' } });
    expect(() => calendars.describe('acme')).toThrow('config/calendars/acme.json: /holidays_from: ');
  });
});

describe('the days that a calendar file changes', () => {
  const due = (file: object, date: string) =>
    calendarsWith({ 'DE-BY': file })
      .computeDue({ jurisdiction: 'DE-BY', renewalDate: date, noticePeriod: 'P0D' })
      .dueAt.toISOString();

  it('are half open only where they would be open at all', () => {
    const file = { half_days: [{ date: '12-24', hours: ['12:00-14:00'], reason: 'Christmas Eve' }] };
    expect(due(file, '2027-12-24')).toBe('2027-12-24T11:00:00.000Z');
    expect(due(file, '2028-12-24')).toBe('2028-12-27T08:00:00.000Z'); // a Sunday before two holidays
  });

  it('are open on a holiday or weekend that is listed as an opening, at the hours it names', () => {
    const file = { openings: [{ date: '2027-12-25', hours: ['10:00-11:00'], reason: 'Inventory' }] };
    expect(due(file, '2027-12-25')).toBe('2027-12-25T09:00:00.000Z');
  });

  it('follow the exact date rather than the yearly one', () => {
    const file = {
      closures: [{ date: '12-30', reason: 'Always closed' }],
      openings: [{ date: '2027-12-30', reason: 'But not this year' }],
    };
    expect(due(file, '2027-12-30')).toBe('2027-12-30T08:00:00.000Z');
    expect(due(file, '2026-12-30')).toBe('2026-12-31T08:00:00.000Z');
  });

  it('may have several openings a day', () => {
    const file = { hours: { monday: ['13:00-17:00', '08:00-12:00'] } };
    expect(calendarsWith({ 'DE-BY': file }).describe('DE-BY').opening_hours.monday).toEqual([
      '08:00-12:00',
      '13:00-17:00',
    ]);
  });

  it('count as business days when they have any hours', () => {
    const file = {
      openings: [{ date: '2027-10-09', reason: 'Working Saturday' }],
      closures: [{ date: '2027-10-08', reason: 'Move' }],
    };
    const steps = calendarsWith({ 'DE-BY': file }).computeDue({
      jurisdiction: 'DE-BY',
      renewalDate: '2027-10-11',
      noticePeriod: 'P2B',
    }).steps;
    expect(steps[1]?.note).toBe(
      '2 business days before 2027-10-11, not counting that day, is Thursday, 7 October 2027 (2 closed days passed over).',
    );
  });
});
