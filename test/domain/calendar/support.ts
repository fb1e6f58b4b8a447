import { readFileSync } from 'node:fs';

import { type Calendars, createCalendars } from '../../../src/domain/calendar/calendars.ts';
import { Refusal } from '../../../src/domain/refusal.ts';

const WEEK = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;

/** The calendars that ship with the product. */
export function shipped(code: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../../config/calendars/${code}.json`, import.meta.url), 'utf8'));
}

/** The same hours on all seven days. */
export function everyDay(...spans: string[]): Record<string, string[]> {
  return Object.fromEntries(WEEK.map((day) => [day, spans]));
}

const ALWAYS = shipped('24x7');

/** Calendars of this runtime with the given files and the shipped 24x7. */
export function calendarsWith(files: Record<string, unknown> = {}): Calendars {
  const all = new Map(Object.entries({ '24x7': ALWAYS, ...files }));
  return createCalendars({
    source: (code) => all.get(code),
    tzVersion: process.versions.tz ?? 'unknown',
    holidayLibraryVersion: '3.37.0',
  });
}

/** What a call refuses with, as an API client sees it. */
export function refusalOf(call: () => unknown): { code: string; path: string | undefined; detail: string } {
  try {
    call();
  } catch (error) {
    if (error instanceof Refusal)
      return { code: error.code, path: error.faults[0]?.path, detail: error.message };
    throw error;
  }
  throw new Error('nothing was refused');
}
