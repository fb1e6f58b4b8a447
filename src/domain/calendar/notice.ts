import { MAX_CLOSED_DAYS } from './business-hours.ts';
import { type Day, isoDate, minusMonths, spokenDate } from './dates.ts';

/** A length of time before a date: calendar units, or business days (our addition to ISO 8601: P10B). */
export type Period =
  | { readonly kind: 'calendar'; readonly months: number; readonly days: number; readonly spoken: string }
  | { readonly kind: 'business'; readonly days: number; readonly spoken: string };

/** Where counting back ended and how to tell it; `day` undefined: too few business days were found. */
export interface CountedBack {
  readonly day: Day | undefined;
  readonly note: string;
}

/** The form of a period as a regular expression; what it lets through may still be too long. */
export const PERIOD_PATTERN = '^P(\\d{1,6}B|(?=\\d)(\\d{1,6}Y)?(\\d{1,6}M)?(\\d{1,6}W)?(\\d{1,6}D)?)$';

const MAX_MONTHS = 120;
const MAX_DAYS = 3660;
const MAX_BUSINESS_DAYS = 1000;
const FORMS = 'P30D, P2W, P1M, P1Y, a combination like P1M15D, or business days like P10B';

/** The period that a text like P1M15D or P10B names (ISO 8601 durations of whole days), or what is wrong with it. */
export function parsePeriod(text: unknown): Period | string {
  const shown = JSON.stringify(text);
  if (typeof text !== 'string') return `${shown} is no period: write ${FORMS}`;
  const business = /^P(\d{1,6})B$/.exec(text);
  if (business !== null) {
    const days = Number(business[1]);
    if (days > MAX_BUSINESS_DAYS) return `${shown} is more than ${MAX_BUSINESS_DAYS} business days`;
    return { kind: 'business', days, spoken: count(days, 'business day') };
  }
  if (/^P.*T/.test(text)) return `${shown} holds hours: periods are whole dates, write ${FORMS}`;
  const parts = /^P(?=\d)(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?$/.exec(text);
  if (parts === null) return `${shown} is no period: write ${FORMS}`;
  const [years = 0, months = 0, weeks = 0, days = 0] = parts.slice(1).map((part) => Number(part ?? 0));
  const period = { months: years * 12 + months, days: weeks * 7 + days };
  if (
    period.months > MAX_MONTHS ||
    period.days > MAX_DAYS ||
    period.months * 31 + period.days > MAX_DAYS + 60
  ) {
    return `${shown} is longer than ten years`;
  }
  const spoken = [count(years, 'year'), count(months, 'month'), count(weeks, 'week'), count(days, 'day')]
    .filter((part) => !part.startsWith('0 '))
    .join(' and ');
  return { kind: 'calendar', ...period, spoken: spoken === '' ? '0 days' : spoken };
}

/**
 * The date a period before `start`, which does not count itself.
 *
 * Months come before days, so that "one month and 15 days" does not depend on which month the days begin in.
 */
export function countBack(start: Day, period: Period, isBusinessDay: (day: Day) => boolean): CountedBack {
  if (period.kind === 'business') return countBusinessDaysBack(start, period.days, isBusinessDay);
  const month = minusMonths(start, period.months);
  const day = month - period.days;
  const dayOfMonth = isoDate(start).slice(8);
  const clamped = isoDate(month).slice(8) !== dayOfMonth;
  const remarks = [
    ...(period.months > 0 && period.days > 0 ? [`the months first, to ${isoDate(month)}`] : []),
    ...(clamped ? [`that month has no day ${dayOfMonth}, so its last one is taken`] : []),
  ];
  const via = remarks.length > 0 ? ` (${remarks.join('; ')})` : '';
  return { day, note: `${period.spoken} before ${isoDate(start)} is ${spokenDate(day)}${via}.` };
}

function countBusinessDaysBack(start: Day, days: number, isBusinessDay: (day: Day) => boolean): CountedBack {
  let day = start;
  let closedInARow = 0;
  let passed = 0;
  for (let left = days; left > 0; ) {
    day -= 1;
    if (isBusinessDay(day)) {
      left -= 1;
      closedInARow = 0;
      continue;
    }
    passed += 1;
    closedInARow += 1;
    if (closedInARow > MAX_CLOSED_DAYS) {
      return {
        day: undefined,
        note: `there is no business day in the ${MAX_CLOSED_DAYS} days from ${isoDate(day)}`,
      };
    }
  }
  const skipped = passed > 0 ? ` (${count(passed, 'closed day')} passed over)` : '';
  return {
    day,
    note: `${count(days, 'business day')} before ${isoDate(start)}, not counting that day, is ${spokenDate(day)}${skipped}.`,
  };
}

function count(amount: number, unit: string): string {
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`;
}
