import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createOracle, officeHours, STEP_MS, wallOf } from './oracle.ts';
import { calendarsWith, everyDay } from './support.ts';

const ZONES = Intl.supportedValuesOf('timeZone');
const date = fc
  .date({ min: new Date('2024-01-01'), max: new Date('2040-12-31'), noInvalidDate: true })
  .map((at) => at.toISOString().slice(0, 10));

// Weekend by Date's numbers, 0 being Sunday; whole-day holidays only, since the second opinion knows no others.
const OFFICES: Record<string, readonly number[]> = {
  'DE-BY': [6, 0],
  'US-CA': [6, 0],
  US: [6, 0],
  'GB-ENG': [6, 0],
  NZ: [6, 0],
  JP: [6, 0],
  BR: [6, 0],
  ZA: [6, 0],
  PL: [6, 0],
  EG: [5, 6],
  SA: [5, 6],
  IR: [5],
  IN: [0],
};

describe('a due date', () => {
  it('is the first instant in business hours from local midnight on, in every zone', {
    timeout: 120_000,
  }, () => {
    const oracles = new Map(
      Object.entries(OFFICES).map(([code, weekend]) => [code, officeHours(code, weekend)]),
    );
    const calendars = calendarsWith();
    fc.assert(
      fc.property(
        fc.constantFrom(...oracles.keys()),
        fc.constantFrom(...ZONES),
        date,
        fc.integer({ min: 0, max: 400 }),
        (jurisdiction, timeZone, renewalDate, days) => {
          const oracle = oracles.get(jurisdiction) ?? createOracle(() => false);
          const { dueAt, deadlineAt } = calendars.computeDue({
            jurisdiction,
            timeZone,
            renewalDate,
            noticePeriod: `P${days}D`,
          });
          const rawDate = new Date(Date.parse(renewalDate) - days * 86_400_000).toISOString().slice(0, 10);
          const raw = oracle.startOfDate(timeZone, rawDate);
          expect(dueAt.toISOString()).toBe(new Date(oracle.firstOpen(timeZone, raw)).toISOString());
          expect(oracle.isOpen(oracle.wall(timeZone, dueAt.getTime()))).toBe(true);
          expect(deadlineAt.getTime()).toBe(oracle.startOfDate(timeZone, renewalDate));
        },
      ),
      { numRuns: 1_500 },
    );
  });

  it('is the first such instant around every change of a clock in 2027, whatever the hours', {
    timeout: 120_000,
  }, () => {
    const hours: Record<string, string[]> = {
      always: ['00:00-24:00'],
      early: ['00:30-01:15'],
      small: ['01:30-02:45'],
      gap: ['02:15-02:45', '23:15-23:45'],
      late: ['03:00-04:00', '23:00-24:00'],
    };
    const calendars = calendarsWith(
      Object.fromEntries(
        Object.entries(hours).map(([code, spans]) => [
          code,
          { holidays_from: 'none', hours: everyDay(...spans) },
        ]),
      ),
    );
    const changes = ZONES.flatMap((zone) => datesOfChange(zone, 2027).map((each) => ({ zone, date: each })));
    expect(changes.length).toBeGreaterThan(100);
    for (const [jurisdiction, spans] of Object.entries(hours)) {
      const oracle = createOracle((wall) => {
        const time = wall.slice(11);
        return spans.some((span) => time >= span.slice(0, 5) && time < span.slice(6));
      });
      for (const change of changes) {
        const { dueAt } = calendars.computeDue({
          jurisdiction,
          timeZone: change.zone,
          renewalDate: change.date,
          noticePeriod: 'P0D',
        });
        const raw = oracle.startOfDate(change.zone, change.date);
        const expected = new Date(oracle.firstOpen(change.zone, raw)).toISOString();
        expect(`${change.zone} ${change.date} ${jurisdiction}: ${dueAt.toISOString()}`).toBe(
          `${change.zone} ${change.date} ${jurisdiction}: ${expected}`,
        );
      }
    }
  });

  it('comes no earlier for a longer notice, and never after one with fewer days', () => {
    const calendars = calendarsWith();
    fc.assert(
      fc.property(
        date,
        fc.integer({ min: 0, max: 300 }),
        fc.integer({ min: 0, max: 60 }),
        (renewalDate, days, more) => {
          const due = (notice: number) =>
            calendars
              .computeDue({ jurisdiction: 'DE-BY', renewalDate, noticePeriod: `P${notice}D` })
              .dueAt.getTime();
          expect(due(days + more)).toBeLessThanOrEqual(due(days));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('counted in business days has exactly that many open days before the renewal date', () => {
    const calendars = calendarsWith();
    const oracle = officeHours('DE-BY', [6, 0]);
    fc.assert(
      fc.property(date, fc.integer({ min: 1, max: 60 }), (renewalDate, days) => {
        const { dueAt } = calendars.computeDue({
          jurisdiction: 'DE-BY',
          renewalDate,
          noticePeriod: `P${days}B`,
        });
        let open = 0;
        for (
          let at = Date.parse(dueAt.toISOString().slice(0, 10));
          at < Date.parse(renewalDate);
          at += 86_400_000
        ) {
          if (oracle.isOpen(`${new Date(at).toISOString().slice(0, 10)} 12:00`)) open += 1;
        }
        expect(open).toBe(days);
      }),
      { numRuns: 200 },
    );
  });
});

/** The dates of a year on which a zone's offset is another at the end than at the start, and the days around. */
function datesOfChange(zone: string, year: number): string[] {
  const found: string[] = [];
  const shift = (at: number) => Date.parse(`${wallOf(zone, at).replace(' ', 'T')}Z`) - at;
  let before = shift(Date.UTC(year, 0, 1));
  for (let at = Date.UTC(year, 0, 2); at < Date.UTC(year + 1, 0, 1); at += 96 * STEP_MS) {
    const after = shift(at);
    if (after !== before) {
      for (const days of [-2, -1, 0])
        found.push(new Date(at + days * 96 * STEP_MS).toISOString().slice(0, 10));
    }
    before = after;
  }
  return found;
}
