import { IANAZone } from 'luxon';

import { DAY_MS, type Day } from './dates.ts';

/**
 * A time zone as two questions to the runtime's tz data.
 *
 * Wall times are milliseconds of a clock on the wall read as if it were UTC; no local time is ever resolved by
 * a library, because luxon's answer to an ambiguous one depends on the host's current offset (moment/luxon#1089).
 */
export interface Zone {
  readonly name: string;
  /** Milliseconds to add to an instant to read the wall clock. */
  offsetAt(instantMs: number): number;
}

// Two changes of one zone's offset are never this close (Morocco's Ramadan pair, the closest, is a month apart).
const HOP_MS = 7 * DAY_MS;
// No zone has ever been further than 15 h 13 min from UTC.
const WIDEST_OFFSET_MS = 16 * 3_600_000;

/** The zone of that IANA name in whatever case, or undefined where the runtime knows none (offsets are no zones). */
export function findZone(name: string): Zone | undefined {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name) || !IANAZone.isValidZone(name)) return undefined;
  const resolved = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  // An alias resolves to another name (Asia/Kolkata): keep what was said, but in the spelling where it is known.
  const spelling = resolved.toLowerCase() === name.toLowerCase() ? resolved : name;
  const zone = IANAZone.create(spelling);
  return { name: spelling, offsetAt: (instantMs) => Math.round(zone.offset(instantMs) * 60_000) };
}

/**
 * The first instant from `fromMs` on at which the wall clock shows a wanted time.
 *
 * Between two changes of the offset the wall clock runs evenly, so the search goes from change to change: a
 * skipped hour ends in the first instant after it and a repeated hour in the first of the two by itself.
 *
 * @param nextWall  the earliest wanted wall time at or after the one given; undefined ends the search
 */
export function firstInstant(
  zone: Zone,
  fromMs: number,
  nextWall: (wallMs: number) => number | undefined,
): number | undefined {
  let at = fromMs;
  for (;;) {
    const offset = zone.offsetAt(at);
    const wall = nextWall(at + offset);
    if (wall === undefined) return undefined;
    const change = nextOffsetChange(zone, at, wall - offset);
    if (change === undefined) return wall - offset;
    at = change;
  }
}

/** The first instant of a date: midnight, or where the clock skips it (or the whole date) what follows. */
export function startOfDay(zone: Zone, day: Day): Date {
  const midnight = day * DAY_MS;
  const found = firstInstant(zone, midnight - WIDEST_OFFSET_MS, (wall) => Math.max(wall, midnight));
  return new Date(found ?? Number.NaN); // the wanted time is always ahead, so it is always found
}

/** The date and time of day on the wall at an instant. */
export function wallAt(zone: Zone, at: Date): number {
  return at.getTime() + zone.offsetAt(at.getTime());
}

/** True where the wall clock will show the same time again because it is put back. */
export function isRepeated(zone: Zone, at: Date): boolean {
  const wall = wallAt(zone, at);
  const laterOffset = zone.offsetAt(at.getTime() + DAY_MS);
  const again = wall - laterOffset;
  return again > at.getTime() && zone.offsetAt(again) === laterOffset;
}

/** RFC 3339 with the zone's offset, "2027-03-01T09:00:00+01:00". */
export function localTime(zone: Zone, at: Date): string {
  const offset = zone.offsetAt(at.getTime());
  const wall = new Date(at.getTime() + offset).toISOString().slice(0, 19);
  const size = new Date(Math.abs(offset)).toISOString().slice(11, 16);
  return `${wall}${offset < 0 ? '-' : '+'}${size}`;
}

/** Orders tz data versions ("2025b" < "2025c" < "2026a") like a sort callback; throws RangeError on other text. */
export function compareTzVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => {
    const parts = /^(\d{4})([a-z]*)$/.exec(version);
    if (parts === null) throw new RangeError(`"${version}" is no tz data version like 2025b`);
    return { year: Number(parts[1]), letters: parts[2] ?? '' };
  });
  if (left === undefined || right === undefined) return 0;
  if (left.year !== right.year) return left.year - right.year;
  if (left.letters.length !== right.letters.length) return left.letters.length - right.letters.length;
  return left.letters < right.letters ? -1 : left.letters > right.letters ? 1 : 0;
}

/** Whether a tz data version is the minimum or a later one; what is no version is not. */
export function isTzAtLeast(version: string | undefined, minimum: string): boolean {
  return version !== undefined && /^\d{4}[a-z]+$/.test(version) && compareTzVersions(version, minimum) >= 0;
}

function nextOffsetChange(zone: Zone, fromMs: number, toMs: number): number | undefined {
  const offset = zone.offsetAt(fromMs);
  for (let same = fromMs; same < toMs; ) {
    let other = Math.min(same + HOP_MS, toMs);
    if (zone.offsetAt(other) === offset) {
      same = other;
      continue;
    }
    while (other - same > 1) {
      const middle = Math.floor((same + other) / 2);
      if (zone.offsetAt(middle) === offset) same = middle;
      else other = middle;
    }
    return other;
  }
  return undefined;
}
