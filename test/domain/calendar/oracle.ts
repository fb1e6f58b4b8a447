import DateHolidays from 'date-holidays';

/**
 * A slow second opinion on business hours that shares no code with the product: it walks through time in steps of
 * fifteen minutes, reads every wall clock from Intl.DateTimeFormat and compares texts.
 */
export interface Oracle {
  /** 'YYYY-MM-DD HH:MM' on the wall. */
  wall(zone: string, instantMs: number): string;
  /** The first step from which on the wall shows the date or a later one. */
  startOfDate(zone: string, date: string): number;
  isOpen(wall: string): boolean;
  /** The first open step at or after an instant that is itself a step. */
  firstOpen(zone: string, fromMs: number): number;
}

// Every offset change since 1980 happened on a whole quarter of an hour of UTC.
export const STEP_MS = 15 * 60_000;

const formats = new Map<string, Intl.DateTimeFormat>();

export function wallOf(zone: string, instantMs: number): string {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
    });
    formats.set(zone, format);
  }
  return format.format(instantMs);
}

export function createOracle(isOpen: (wall: string) => boolean): Oracle {
  return {
    wall: wallOf,
    isOpen,
    startOfDate(zone, date) {
      let at = Date.parse(`${date}T00:00:00Z`) - 16 * 3_600_000;
      while (wallOf(zone, at).slice(0, 10) < date) at += STEP_MS;
      return at;
    },
    firstOpen(zone, fromMs) {
      let at = fromMs;
      while (!isOpen(wallOf(zone, at))) at += STEP_MS;
      return at;
    },
  };
}

/** Nine to five on every day that is neither the weekend nor a public holiday of the library's raw list. */
export function officeHours(code: string, weekend: readonly number[]): Oracle {
  const closed = new Set<string>();
  const library = new DateHolidays(code);
  for (let year = 2013; year <= 2041; year += 1) {
    for (const holiday of library.getHolidays(year)) {
      if (holiday.type !== 'public') continue;
      const days = Math.max(1, Math.round((holiday.end.getTime() - holiday.start.getTime()) / 86_400_000));
      for (let day = 0; day < days; day += 1) {
        const at = Date.parse(`${holiday.date.slice(0, 10)}T00:00:00Z`) + day * 86_400_000;
        closed.add(new Date(at).toISOString().slice(0, 10));
      }
    }
  }
  return createOracle((wall) => {
    const [date = '', time = ''] = wall.split(' ');
    if (time < '09:00' || time >= '17:00') return false;
    return !closed.has(date) && !weekend.includes(new Date(`${date}T00:00:00Z`).getUTCDay());
  });
}
