import { refuseField } from '../refusal.ts';
import type { Calendar } from './calendar.ts';
import { calendarFileName } from './calendar-file.ts';
import type { HolidayBook } from './holidays.ts';

/**
 * Refuses a calendar whose holiday list is empty in any of the years: missing data must not read as always open.
 *
 * A calendar that has no holidays because its file says so passes.
 */
export function requireHolidays(calendar: Calendar, years: readonly number[], book: HolidayBook): void {
  const { code, holidaysFrom } = calendar;
  if (holidaysFrom === undefined) return;
  const empty = years.find((year) => book.listHolidays(holidaysFrom, year).length === 0);
  if (empty === undefined) return;
  const remedy = `say "holidays_from": "none" in ${calendarFileName(code)} if that is right`;
  const message = `date-holidays lists no public holiday for ${holidaysFrom} in ${empty}: ${remedy}`;
  throw refuseField('/jurisdiction', message, 'unknown_jurisdiction');
}
