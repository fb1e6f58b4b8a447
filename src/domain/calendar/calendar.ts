import { Info } from 'luxon';

import {
  type CalendarFile,
  CalendarFileError,
  type CalendarFileFault,
  calendarFileName,
  exceptionKeys,
  isIsoCode,
} from './calendar-file.ts';
import { type Day, isoDate, WEEKDAYS, type Weekday, weekdayOf, yearOf } from './dates.ts';
import type { HolidayBook } from './holidays.ts';
import { commonSpans, formatMinute, OFFICE_HOURS, type Span, WHOLE_DAY, withoutSpan } from './hours.ts';

/** The opening hours of one local date and why they are not the usual ones, "" where they are. */
interface CalendarDay {
  readonly hours: readonly Span[];
  readonly reason: string;
}

/** A jurisdiction with its calendar file applied. */
export interface Calendar {
  readonly code: string;
  readonly file: CalendarFile | undefined;
  /** undefined: this calendar has no public holidays, because its file says so. */
  readonly holidaysFrom: string | undefined;
  /** The zones that the file or else the holiday library names; only one alone decides. */
  readonly timeZones: readonly string[];
  readonly weekend: readonly Weekday[];
  readonly weekly: ReadonlyMap<Weekday, readonly Span[]>;
  dayAt(day: Day): CalendarDay;
}

/** Applies a file to the library's jurisdiction; throws CalendarFileError where the file names an unknown one. */
export function createCalendar(
  code: string,
  from: { file: CalendarFile | undefined; book: HolidayBook },
): Calendar | undefined {
  const { file, book } = from;
  const source = file?.holidaysFrom ?? code;
  const jurisdiction = source === 'none' ? undefined : book.findJurisdiction(source);
  if (source !== 'none' && jurisdiction === undefined) {
    if (file === undefined) return undefined;
    throw faultyFile(code, {
      path: '/holidays_from',
      message: `date-holidays has no holidays for ${source}: name a jurisdiction that it knows, or "none"`,
    });
  }
  // Where the calendar is at home decides on weekend and zones, also when holidays come from elsewhere or nowhere.
  const home = (isIsoCode(code) ? book.findJurisdiction(code) : undefined) ?? jurisdiction;
  if (home === undefined && (file?.hours.size ?? 0) < WEEKDAYS.length) {
    throw faultyFile(code, {
      path: '/hours',
      message: 'no known jurisdiction says which days are a weekend: give the hours of all seven days',
    });
  }
  const weekend = weekendOf(home?.country);
  const weekly = new Map(
    WEEKDAYS.map((day) => [day, file?.hours.get(day) ?? (weekend.includes(day) ? [] : [OFFICE_HOURS])]),
  );

  return {
    code,
    file,
    holidaysFrom: jurisdiction?.code,
    timeZones: file?.timeZone === undefined ? (home?.timeZones ?? []) : [file.timeZone],
    weekend,
    weekly,
    dayAt(day) {
      const [date, yearly] = exceptionKeys(isoDate(day));
      const exception = file?.exceptions.get(date) ?? file?.exceptions.get(yearly);
      if (exception?.kind === 'closed' || exception?.kind === 'open') {
        return { hours: exception.hours, reason: exception.reason };
      }
      const weekday = weekdayOf(day);
      const usual = weekly.get(weekday) ?? [];
      if (usual.length === 0) {
        return {
          hours: [],
          reason: weekend.includes(weekday) ? 'weekend' : 'no opening hours on this weekday',
        };
      }
      let hours = exception === undefined ? usual : commonSpans(usual, exception.hours);
      const reasons = exception === undefined ? [] : [exception.reason];
      if (jurisdiction !== undefined) {
        for (const holiday of book.listHolidays(jurisdiction.code, yearOf(day))) {
          if (holiday.day !== day) continue;
          hours = withoutSpan(hours, holiday.closed);
          reasons.push(`public holiday, ${holiday.name}${partOfDay(holiday.closed)}`);
        }
      }
      return { hours, reason: reasons.join('; ') };
    },
  };
}

function faultyFile(code: string, fault: CalendarFileFault): CalendarFileError {
  return new CalendarFileError(calendarFileName(code), [fault]);
}

function partOfDay(closed: Span): string {
  const start = closed.from > 0 ? ` from ${formatMinute(closed.from)}` : '';
  return closed.until < WHOLE_DAY.until ? `${start} until ${formatMinute(closed.until)}` : start;
}

/** The weekend of a country as CLDR has it, by an explicit locale so that the host's plays no part. */
function weekendOf(country: string | undefined): Weekday[] {
  if (country === undefined) return [];
  const numbers = Info.getWeekendWeekdays({ locale: `en-${country}` });
  return WEEKDAYS.filter((_, index) => numbers.includes((index + 1) as (typeof numbers)[number]));
}
