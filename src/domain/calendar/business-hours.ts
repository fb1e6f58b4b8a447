import type { Calendar } from './calendar.ts';
import { DAY_MS } from './dates.ts';
import { firstInstant, wallAt, type Zone } from './zone.ts';

/** How far an opening or a business day is looked for; a calendar that stays closed longer is a mistake in it. */
export const MAX_CLOSED_DAYS = 400;

/**
 * The first instant from `from` on that is inside opening hours: `from` itself where it already is.
 *
 * The closing minute is outside. Undefined: nothing opens within MAX_CLOSED_DAYS.
 */
export function firstBusinessInstant(calendar: Calendar, zone: Zone, from: Date): Date | undefined {
  const lastDay = Math.floor(wallAt(zone, from) / DAY_MS) + MAX_CLOSED_DAYS;
  const found = firstInstant(zone, from.getTime(), (wallMs) => nextOpenWall(calendar, wallMs, lastDay));
  return found === undefined ? undefined : new Date(found);
}

function nextOpenWall(calendar: Calendar, wallMs: number, lastDay: number): number | undefined {
  for (let day = Math.floor(wallMs / DAY_MS); day <= lastDay; day += 1) {
    const midnight = day * DAY_MS;
    for (const span of calendar.dayAt(day).hours) {
      if (wallMs < midnight + span.until * 60_000) return Math.max(wallMs, midnight + span.from * 60_000);
    }
  }
  return undefined;
}
