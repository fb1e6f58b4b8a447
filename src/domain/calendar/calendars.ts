import { didYouMean } from '../nearest.ts';
import { refuseField } from '../refusal.ts';
import { createBoundedCache } from './bounded-cache.ts';
import { type Calendar, createCalendar } from './calendar.ts';
import { calendarFileName, isCustomCode, isIsoCode, parseCalendarFile } from './calendar-file.ts';
import { type CalendarContent, gatherContent, hashContent } from './content.ts';
import { computeDue, type DueRequest, type DueStep } from './due.ts';
import { createHolidayBook, FIRST_HOLIDAY_YEAR, isHolidayYear, LAST_HOLIDAY_YEAR } from './holidays.ts';
import { requireHolidays } from './require-holidays.ts';
import { findZone, type Zone } from './zone.ts';

/** Gives the parsed JSON of `config/calendars/<code>.json`, or undefined where there is no such file. */
export type CalendarSource = (code: string) => unknown;

/** Why a reminder is due when it is, as it is stored for an auditor and can be recomputed. */
export interface DueProof {
  readonly inputs: {
    readonly renewal_date: string;
    readonly notice_period: string;
    readonly jurisdiction: string;
    readonly time_zone?: string;
    readonly deadline?: string;
    readonly deadline_at?: string;
  };
  readonly rule: string;
  readonly time_zone: string;
  readonly due_at: string;
  readonly deadline_at: string;
  readonly steps: readonly DueStep[];
  readonly calendar_code: string;
  /** The years whose holidays the hash covers. */
  readonly calendar_years: readonly number[];
  /** SHA-256 of the calendar in these years and this zone, see `gatherContent`. */
  readonly calendar_sha256: string;
  readonly holiday_library: string;
  readonly tz_version: string;
}

export interface Due {
  readonly dueAt: Date;
  readonly deadlineAt: Date;
  readonly timeZone: string;
  readonly steps: readonly DueStep[];
  readonly proof: DueProof;
}

/** A calendar as a person asks for it. */
export interface CalendarDescription extends CalendarContent {
  readonly name: string | null;
  /** More than one, or none: a reminder must say which. */
  readonly time_zones: readonly string[];
  /** The year of `holidays`; null where none was asked for, and then no holidays are listed. */
  readonly year: number | null;
  readonly sources: readonly string[];
  readonly calendar_sha256: string;
}

export interface Calendars {
  /** Throws a Refusal for a request that cannot be computed, CalendarFileError for a file that cannot be used. */
  computeDue(request: DueRequest): Due;
  /** Throws like computeDue. */
  describe(
    jurisdiction: string,
    options?: { timeZone?: string | undefined; year?: number | undefined },
  ): CalendarDescription;
}

const RULE = 'renewal date minus notice period, at local midnight, rounded forward to the next business hour';

/**
 * The calendars of one process.
 *
 * @param options.source  asked at every computation; a file is read anew when it returns another object
 * @param options.tzVersion  the runtime's tz data, `process.versions.tz`
 * @param options.holidayLibraryVersion  the version of date-holidays
 */
export function createCalendars(options: {
  source: CalendarSource;
  tzVersion: string;
  holidayLibraryVersion: string;
}): Calendars {
  const book = createHolidayBook();
  const library = `date-holidays@${options.holidayLibraryVersion}`;
  // Asking the runtime whether a zone exists costs more than the rest of a computation.
  const zones = createBoundedCache<Zone | undefined>(700);
  const lookUpZone = (name: string) => zones(name, () => findZone(name));
  const slots = createBoundedCache<{ content?: unknown; calendar?: Calendar }>(500);

  const findCalendar = (code: string): Calendar => {
    if (typeof code !== 'string' || !(isIsoCode(code) || isCustomCode(code)))
      throw refuseUnknown(String(code));
    const content = options.source(code);
    const slot = slots(code, () => ({}));
    if (slot.calendar === undefined || slot.content !== content) {
      const file = content === undefined ? undefined : parseCalendarFile(code, content);
      const calendar = createCalendar(code, { file, book });
      if (calendar === undefined) throw refuseUnknown(code);
      slot.content = content;
      slot.calendar = calendar;
    }
    return slot.calendar;
  };

  const refuseUnknown = (code: string) => {
    const upper = code.toUpperCase();
    const known = book.findJurisdiction(upper) === undefined ? undefined : upper;
    const hint =
      known === undefined ? didYouMean(code, book.listCodes(upper.slice(0, 2))) : ` Did you mean "${known}"?`;
    const remedy = 'use an ISO 3166 code that date-holidays knows, or add a calendar file of that name';
    return refuseField(
      '/jurisdiction',
      `jurisdiction "${code}" is unknown: ${remedy}.${hint}`,
      'unknown_jurisdiction',
    );
  };

  return {
    computeDue(request) {
      const calendar = findCalendar(request.jurisdiction);
      const zone = chooseZone(calendar, request.timeZone, lookUpZone);
      const { dueAt, deadlineAt, steps, years } = computeDue(request, calendar, zone);
      requireHolidays(calendar, years, book);
      const proof: DueProof = {
        inputs: {
          renewal_date: request.renewalDate,
          notice_period: request.noticePeriod,
          jurisdiction: request.jurisdiction,
          ...(request.timeZone === undefined ? {} : { time_zone: request.timeZone }),
          ...(request.deadline === undefined ? {} : { deadline: request.deadline }),
          ...(request.deadlineAt === undefined ? {} : { deadline_at: request.deadlineAt.toISOString() }),
        },
        rule: RULE,
        time_zone: zone.name,
        due_at: dueAt.toISOString(),
        deadline_at: deadlineAt.toISOString(),
        steps,
        calendar_code: calendar.code,
        calendar_years: years,
        calendar_sha256: hashContent(gatherContent(calendar, { book, timeZone: zone.name, years })),
        holiday_library: library,
        tz_version: options.tzVersion,
      };
      return { dueAt, deadlineAt, timeZone: zone.name, steps, proof };
    },
    describe(jurisdiction, { timeZone, year } = {}) {
      const calendar = findCalendar(jurisdiction);
      const decided = timeZone !== undefined || calendar.timeZones.length === 1;
      const zone = decided ? chooseZone(calendar, timeZone, lookUpZone) : undefined;
      if (year !== undefined && !isHolidayYear(year)) {
        throw refuseField(
          '/year',
          `year must be one whose holidays are known: ${FIRST_HOLIDAY_YEAR} to ${LAST_HOLIDAY_YEAR}`,
        );
      }
      const years = year === undefined ? [] : [year];
      requireHolidays(calendar, years, book);
      const content = gatherContent(calendar, { book, timeZone: zone?.name, years });
      const fromLibrary =
        calendar.holidaysFrom === undefined ? [] : [`${library}: holidays of ${calendar.holidaysFrom}`];
      const fromFile =
        calendar.file === undefined ? [] : [calendarFileName(calendar.code), ...calendar.file.sources];
      return {
        ...content,
        name: calendar.file?.name ?? null,
        time_zones: calendar.timeZones,
        year: year ?? null,
        sources: [
          ...fromLibrary,
          'Unicode CLDR: weekend',
          `tz ${options.tzVersion}: local time`,
          ...fromFile,
        ],
        calendar_sha256: hashContent(content),
      };
    },
  };
}

/** The computation as lines for people: local time, then what it is. */
export function explainSteps(due: Due): string[] {
  return due.steps.map((step) => `${step.local}  ${step.note}`);
}

function chooseZone(
  calendar: Calendar,
  given: string | undefined,
  lookUp: (name: string) => Zone | undefined,
): Zone {
  const { code, timeZones } = calendar;
  const only = timeZones.length === 1 ? timeZones[0] : undefined;
  const name = given ?? only;
  if (name === undefined) {
    const listed = timeZones.slice(0, 5).join(', ') + (timeZones.length > 5 ? ', …' : '');
    const what =
      timeZones.length === 0 ? 'no time zone of its own' : `${timeZones.length} time zones (${listed})`;
    const message = `${code} has ${what}: give time_zone, or set "time_zone" in ${calendarFileName(code)}`;
    throw refuseField('/time_zone', message, 'time_zone_required');
  }
  const zone = typeof name === 'string' ? lookUp(name) : undefined;
  if (zone === undefined) {
    const hint = didYouMean(String(name), [...timeZones, ...Intl.supportedValuesOf('timeZone')]);
    throw refuseField(
      '/time_zone',
      `time_zone "${name}" is no IANA time zone: write one like Europe/Berlin.${hint}`,
    );
  }
  return zone;
}
