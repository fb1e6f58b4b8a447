const CAP_MS = 86_400_000;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const SHORT_DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
const MONTH = `(?<month>${MONTHS.join('|')})`;
const TIME = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)';

/** IMF-fixdate, RFC 850 and asctime: the three forms of RFC 9110 section 5.6.7, case and spaces included. */
const DATE_FORMS = [
  new RegExp(`^${SHORT_DAY}, (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^${LONG_DAY}, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT$`),
  new RegExp(`^${SHORT_DAY} ${MONTH} (?<day>\\d\\d| \\d) ${TIME} (?<year>\\d{4})$`),
];

/**
 * What a `Retry-After` header asks for (RFC 9110 section 10.2.3).
 *
 * Strict on purpose: `Date.parse` reads `-5` and `1.5` as days of 2001. The name of the weekday is not compared with
 * the date.
 *
 * @param value  the header; undefined when there was none
 * @returns milliseconds from 0 to 24 hours, 0 for a date that has passed; undefined for anything that is neither
 *   1 to 10 digits nor one of the three date forms
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined;
  const text = value.replace(/^[ \t]+|[ \t]+$/g, '');
  const waitMs = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : untilDate(text, now);
  return waitMs === undefined ? undefined : Math.min(Math.max(waitMs, 0), CAP_MS);
}

function untilDate(text: string, now: Date): number | undefined {
  for (const form of DATE_FORMS) {
    const parts = form.exec(text)?.groups;
    if (parts === undefined) continue;
    const instantMs = toInstant(parts, now);
    return instantMs === undefined ? undefined : instantMs - now.getTime();
  }
  return undefined;
}

/** Milliseconds since 1970; undefined for a day the month does not have. */
function toInstant(parts: Record<string, string>, now: Date): number | undefined {
  const [day, hour, minute, second] = ['day', 'hour', 'minute', 'second'].map((part) => Number(parts[part]));
  const month = MONTHS.indexOf(parts['month'] ?? '');
  const yearText = parts['year'] ?? '';
  const year = yearText.length === 2 ? fullYear(Number(yearText), now) : Number(yearText);
  const midnight = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  midnight.setUTCFullYear(year, month, day);
  if (midnight.getUTCDate() !== day) return undefined;
  return midnight.setUTCHours(hour ?? 0, minute, second);
}

/** RFC 9110 section 5.6.7: a year that seems more than 50 years ahead is the latest past one that ends alike. */
function fullYear(lastDigits: number, now: Date): number {
  const thisYear = now.getUTCFullYear();
  const yearsAhead = (lastDigits - (thisYear % 100) + 100) % 100;
  return thisYear + (yearsAhead > 50 ? yearsAhead - 100 : yearsAhead);
}
