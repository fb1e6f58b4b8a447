import DateHolidays from 'date-holidays';

import { createBoundedCache } from './bounded-cache.ts';
import { DAY_MS, type Day, parseDay, yearOf } from './dates.ts';
import { DAY_MINUTES, type Span } from './hours.ts';

/** A public holiday on one local date; most close all of it. */
interface Holiday {
  readonly day: Day;
  readonly closed: Span;
  readonly name: string;
}

/** What the holiday library knows about a code. */
interface Jurisdiction {
  readonly code: string;
  readonly country: string;
  readonly timeZones: readonly string[];
}

export interface HolidayBook {
  /** The jurisdiction of an ISO 3166 code (DE, DE-BY), or undefined where the library has no rules for it. */
  findJurisdiction(code: string): Jurisdiction | undefined;
  /** Codes that could be meant instead: those of the same country, or all countries. */
  listCodes(country: string): string[];
  /** The public holidays that touch a year, in order; `code` must be one that findJurisdiction knows. */
  listHolidays(code: string, year: number): readonly Holiday[];
}

/** Local time before is no longer told by tz data reliably, and no contract needs it. */
export const FIRST_HOLIDAY_YEAR = 1970;
/** The library's tables of Islamic feasts end in 2076; after that whole feasts would be missing in silence. */
export const LAST_HOLIDAY_YEAR = 2075;

/** True for a year whose holidays the library knows in full, and those of the year after. */
export function isHolidayYear(year: number): boolean {
  return Number.isInteger(year) && year >= FIRST_HOLIDAY_YEAR && year <= LAST_HOLIDAY_YEAR;
}

/** Opens `date-holidays`; results are kept per code and year because each takes about a millisecond. */
export function createHolidayBook(): HolidayBook {
  const world = new DateHolidays();
  const countries = world.getCountries();
  const books = createBoundedCache<DateHolidays>(200);
  const inYear = createBoundedCache<readonly Holiday[]>(2_000);
  const touching = createBoundedCache<readonly Holiday[]>(2_000);

  // The library works in UTC here: its instants then read as wall times of whatever zone the customer is in.
  const open = (code: string) =>
    books(code, () => new DateHolidays(code, { timezone: 'UTC', languages: ['en'] }));
  const listStartingIn = (code: string, year: number) =>
    inYear(`${code} ${year}`, () =>
      open(code)
        .getHolidays(year)
        .filter((holiday) => holiday.type === 'public')
        .flatMap(closedDays),
    );

  return {
    findJurisdiction(code) {
      const [country = '', state, region] = code.split('-');
      if (!Object.hasOwn(countries, country)) return undefined;
      // For a state it does not know the library answers with the country's holidays: that must not pass.
      if (state !== undefined && !Object.hasOwn(world.getStates(country) ?? {}, state)) return undefined;
      if (region !== undefined && !Object.hasOwn(world.getRegions(country, state ?? '') ?? {}, region)) {
        return undefined;
      }
      return { code, country, timeZones: open(code).getTimezones() };
    },
    listCodes(country) {
      if (!Object.hasOwn(countries, country)) return Object.keys(countries);
      return [country, ...Object.keys(world.getStates(country) ?? {}).map((state) => `${country}-${state}`)];
    },
    listHolidays(code, year) {
      // A holiday of a neighbouring year may reach into this one: a long feast, or a day moved across New Year.
      return touching(`${code} ${year}`, () =>
        [year - 1, year, year + 1]
          .flatMap((each) => listStartingIn(code, each))
          .filter((holiday) => yearOf(holiday.day) === year)
          .sort((a, b) => a.day - b.day || a.closed.from - b.closed.from || (a.name < b.name ? -1 : 1))
          .filter((holiday, index, all) => !isSame(holiday, all[index - 1])),
      );
    },
  };
}

/** One entry per local date that a holiday closes, the last one in part where it ends within the day. */
function closedDays(holiday: { date: string; start: Date; end: Date; name: string }): Holiday[] {
  const date = parseDay(holiday.date.slice(0, 10));
  if (date === undefined) throw new Error(`date-holidays gave an unreadable date: ${holiday.date}`);
  let startMs = holiday.start.getTime();
  let endMs = holiday.end.getTime();
  if (startMs < date * DAY_MS) {
    // Islamic and Hebrew days begin at sunset, 18:00 of the eve here. The law closes civil days: the same
    // number of them from the named date on, while an end that was set by hours stays where it is.
    const wholeDays = (endMs - startMs) % DAY_MS === 0;
    endMs += wholeDays ? date * DAY_MS - startMs : 0;
    startMs = date * DAY_MS;
  }
  const days: Holiday[] = [];
  for (let day = Math.floor(startMs / DAY_MS); day * DAY_MS < endMs; day += 1) {
    const from = Math.max(0, (startMs - day * DAY_MS) / 60_000);
    const until = Math.min(DAY_MINUTES, (endMs - day * DAY_MS) / 60_000);
    days.push({ day, closed: { from, until }, name: holiday.name });
  }
  return days;
}

function isSame(a: Holiday, b: Holiday | undefined): boolean {
  return (
    b?.day === a.day &&
    b.closed.from === a.closed.from &&
    b.closed.until === a.closed.until &&
    b.name === a.name
  );
}
