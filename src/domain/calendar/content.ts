import { createHash } from 'node:crypto';

import type { Calendar } from './calendar.ts';
import { isoDate } from './dates.ts';
import type { HolidayBook } from './holidays.ts';
import { formatSpan } from './hours.ts';

/** A calendar as it counts in certain years and one zone: what the proof's hash is taken of. */
export interface CalendarContent {
  readonly calendar_code: string;
  readonly holidays_from: string | null;
  readonly time_zone: string | null;
  readonly weekend: readonly string[];
  readonly opening_hours: Readonly<Record<string, readonly string[]>>;
  readonly holidays: readonly { readonly date: string; readonly hours: string; readonly name: string }[];
  readonly exceptions: readonly {
    readonly date: string;
    readonly kind: string;
    readonly hours: readonly string[];
    readonly reason: string;
  }[];
}

/** Gathers everything that can decide a date of these years; the order of keys and entries is always the same. */
export function gatherContent(
  calendar: Calendar,
  scope: { book: HolidayBook; timeZone: string | undefined; years: readonly number[] },
): CalendarContent {
  const { holidaysFrom } = calendar;
  const holidays =
    holidaysFrom === undefined
      ? []
      : scope.years.flatMap((year) => scope.book.listHolidays(holidaysFrom, year));
  return {
    calendar_code: calendar.code,
    holidays_from: holidaysFrom ?? null,
    time_zone: scope.timeZone ?? null,
    weekend: calendar.weekend,
    opening_hours: Object.fromEntries(
      [...calendar.weekly].map(([day, spans]) => [day, spans.map(formatSpan)]),
    ),
    holidays: holidays.map((holiday) => ({
      date: isoDate(holiday.day),
      hours: formatSpan(holiday.closed),
      name: holiday.name,
    })),
    exceptions: [...(calendar.file?.exceptions ?? [])]
      .filter(([date]) => date.length === 5 || scope.years.includes(Number(date.slice(0, 4))))
      .map(([date, { kind, hours, reason }]) => ({ date, kind, hours: hours.map(formatSpan), reason }))
      .sort((a, b) => (a.date < b.date ? -1 : 1)),
  };
}

/** Lower-case hex SHA-256 of the content's JSON. */
export function hashContent(content: CalendarContent): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}
