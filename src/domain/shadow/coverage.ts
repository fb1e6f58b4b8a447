import type { CalendarDescription } from '../calendar/calendars.ts';
import { DAY_MS, isoDate, type Weekday, weekdayOf, yearOf } from '../calendar/dates.ts';
import { findZone, localTime } from '../calendar/zone.ts';
import type { ReconciledRow, Shadowed } from './reconcile.ts';

/** What a period has shown of one calendar. */
export interface JurisdictionCoverage {
  readonly jurisdiction: string;
  readonly timeZone: string;
  readonly deliveries: number;
  /** Dates of the period that are closed as a weekend. */
  readonly weekendDates: readonly string[];
  /** Public holidays and closures on days that would be open otherwise. */
  readonly holidays: readonly { readonly date: string; readonly name: string }[];
  /** Open days on which nothing was due: they have shown nothing. */
  readonly idleDates: readonly string[];
}

export interface Coverage {
  /** The dates of the period, as UTC has them. */
  readonly dates: readonly string[];
  readonly jurisdictions: readonly JurisdictionCoverage[];
}

/** Describes a calendar in a zone for a year. */
export type Describe = (jurisdiction: string, timeZone: string, year: number) => CalendarDescription;

/** What a period covers: its days, and per calendar the weekends and holidays in it. */
export function coverageOf(
  rows: readonly ReconciledRow[],
  { from, to, describe }: { readonly from: Date; readonly to: Date; readonly describe: Describe },
): Coverage {
  const days: number[] = [];
  for (let day = Math.ceil(from.getTime() / DAY_MS); (day + 1) * DAY_MS <= to.getTime(); day += 1)
    days.push(day);
  const groups = new Map<string, Shadowed[]>();
  for (const { ours } of rows) {
    // What has no time under today's calendars shows nothing of them.
    if (ours === undefined || typeof ours.recomputedAt === 'string') continue;
    const key = `${ours.jurisdiction} ${ours.timeZone}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [ours]);
    else group.push(ours);
  }
  const jurisdictions = [...groups.values()]
    .map((group) => coverJurisdiction(group, days, describe))
    .sort((a, b) => (a.jurisdiction < b.jurisdiction ? -1 : 1));
  return { dates: days.map(isoDate), jurisdictions };
}

function coverJurisdiction(
  group: readonly Shadowed[],
  days: readonly number[],
  describe: Describe,
): JurisdictionCoverage {
  const { jurisdiction, timeZone } = group[0] as Shadowed;
  const zone = findZone(timeZone);
  const busy = new Set(
    group.map((o) => (zone === undefined ? o.dueAt.toISOString() : localTime(zone, o.dueAt)).slice(0, 10)),
  );
  const weekendDates: string[] = [];
  const holidays: { date: string; name: string }[] = [];
  const idleDates: string[] = [];
  for (const day of days) {
    const date = isoDate(day);
    const calendar = describe(jurisdiction, timeZone, yearOf(day));
    const closure = closureOn(date, calendar);
    if (!isUsuallyOpen(calendar, weekdayOf(day))) {
      if (calendar.weekend.includes(weekdayOf(day))) weekendDates.push(date);
    } else if (closure !== undefined) holidays.push({ date, name: closure });
    else if (!busy.has(date)) idleDates.push(date);
  }
  return { jurisdiction, timeZone, deliveries: group.length, weekendDates, holidays, idleDates };
}

function isUsuallyOpen(calendar: CalendarDescription, weekday: Weekday): boolean {
  return (calendar.opening_hours[weekday] ?? []).length > 0;
}

function closureOn(date: string, calendar: CalendarDescription): string | undefined {
  const exception =
    calendar.exceptions.find((e) => e.date === date) ??
    calendar.exceptions.find((e) => e.date === date.slice(5));
  if (exception !== undefined && exception.kind !== 'short') {
    return exception.kind === 'closed' ? exception.reason : undefined;
  }
  return calendar.holidays.find((h) => h.date === date && h.hours === '00:00-24:00')?.name;
}

const DAYS_OF_A_WEEK = 7;

/** Why a period proves nothing yet; empty: it passes. Counts that agree are no reason to pass. */
export function judgePeriod(period: {
  readonly rows: readonly ReconciledRow[];
  readonly coverage: Coverage;
  readonly hasExpected: boolean;
  readonly to: Date;
  readonly now: Date;
}): readonly string[] {
  const { rows, coverage, to, now } = period;
  const different = rows.filter((row) => row.findings.length > 0).length;
  const idle = commonDates(coverage.jurisdictions.map((j) => j.idleDates.concat(closedDates(j))));
  const open = idle.filter((date) => !isClosedEverywhere(date, coverage));
  const { dates, jurisdictions } = coverage;
  return [
    ...(different > 0 ? [`${different} of ${rows.length} rows differ`] : []),
    ...(to > now ? [`the period ends in the future, at ${to.toISOString()}`] : []),
    ...(rows.every((row) => row.ours === undefined) ? ['no delivery was due in the period'] : []),
    ...(dates.length < DAYS_OF_A_WEEK
      ? [`the period has ${dates.length} whole days (UTC), a full week is needed`]
      : []),
    ...(jurisdictions.some((j) => j.weekendDates.length > 0) ? [] : ['no weekend was seen']),
    ...(jurisdictions.some((j) => j.holidays.length > 0)
      ? []
      : ['no holiday was seen on a day that would be open otherwise']),
    // The old list vouches for days on which neither of the two had anything to do.
    ...(open.length > 0 && !period.hasExpected
      ? [`nothing was due on ${open.join(', ')}: without the old list these days show nothing`]
      : []),
  ];
}

function closedDates(j: JurisdictionCoverage): string[] {
  return [...j.weekendDates, ...j.holidays.map((h) => h.date)];
}

function commonDates(lists: readonly (readonly string[])[]): string[] {
  const [first = [], ...others] = lists;
  return first.filter((date) => others.every((list) => list.includes(date))).sort((a, b) => (a < b ? -1 : 1));
}

function isClosedEverywhere(date: string, { jurisdictions }: Coverage): boolean {
  return jurisdictions.every((j) => closedDates(j).includes(date));
}
