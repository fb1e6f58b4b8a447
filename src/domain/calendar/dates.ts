/** A calendar date without zone, as days since 1970-01-01; adding 1 is always the next date. */
export type Day = number;

export const DAY_MS = 86_400_000;

export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const;
export type Weekday = (typeof WEEKDAYS)[number];

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/** The date that YYYY-MM-DD names, or undefined where the text is anything else or no such date exists. */
export function parseDay(text: unknown): Day | undefined {
  if (typeof text !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  // Date.parse reads this one form as UTC by ECMA-262, but rolls 30 February over: only the round trip tells.
  const day = Date.parse(`${text}T00:00:00Z`) / DAY_MS;
  return Number.isNaN(day) || isoDate(day) !== text ? undefined : day;
}

/** YYYY-MM-DD. */
export function isoDate(day: Day): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

export function yearOf(day: Day): number {
  return new Date(day * DAY_MS).getUTCFullYear();
}

export function weekdayOf(day: Day): Weekday {
  const index = (((day + 3) % 7) + 7) % 7; // 1970-01-01 was a Thursday
  return WEEKDAYS[index] ?? 'monday';
}

/** The same day of an earlier month, or that month's last day where it is shorter. */
export function minusMonths(day: Day, months: number): Day {
  const date = new Date(day * DAY_MS);
  const monthIndex = date.getUTCFullYear() * 12 + date.getUTCMonth() - months;
  const year = Math.floor(monthIndex / 12);
  const month = monthIndex - year * 12;
  const lastDayOfMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(date.getUTCDate(), lastDayOfMonth)) / DAY_MS;
}

/** "Monday, 1 March 2027": English whatever the host's locale. */
export function spokenDate(day: Day): string {
  const date = new Date(day * DAY_MS);
  const weekday = capitalised(weekdayOf(day));
  return `${weekday}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
