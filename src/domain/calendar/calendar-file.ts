import { isMembers } from '../json.ts';
import { didYouMean } from '../nearest.ts';
import { pointerPart } from '../refusal.ts';
import { parseDay, WEEKDAYS, type Weekday } from './dates.ts';
import { mergeSpans, OFFICE_HOURS, parseSpan, type Span } from './hours.ts';
import { findZone } from './zone.ts';

/** A date on which a calendar file departs from weekly hours and holidays. */
interface DayException {
  /** closed: no hours; open: these hours even on a weekend or holiday; short: of the usual hours only these. */
  readonly kind: 'closed' | 'open' | 'short';
  readonly hours: readonly Span[];
  readonly reason: string;
}

/** What one `config/calendars/<code>.json` says; everything left out stays as the jurisdiction has it. */
export interface CalendarFile {
  readonly name: string | undefined;
  readonly sources: readonly string[];
  /** A jurisdiction's code, or 'none' for a calendar without public holidays. */
  readonly holidaysFrom: string | undefined;
  readonly timeZone: string | undefined;
  readonly hours: ReadonlyMap<Weekday, readonly Span[]>;
  /** By YYYY-MM-DD, or by MM-DD for every year; the exact date wins. */
  readonly exceptions: ReadonlyMap<string, DayException>;
}

export interface CalendarFileFault {
  /** JSON pointer (RFC 6901) into the file. */
  readonly path: string;
  readonly message: string;
}

/** A calendar file that cannot be used: the operator's to mend, so not a Refusal. */
export class CalendarFileError extends Error {
  readonly file: string;
  readonly faults: readonly CalendarFileFault[];

  constructor(file: string, faults: readonly CalendarFileFault[]) {
    super(
      faults
        .map((fault) => `${file}: ${fault.path === '' ? '' : `${fault.path}: `}${fault.message}`)
        .join('\n'),
    );
    this.name = 'CalendarFileError';
    this.file = file;
    this.faults = faults;
  }
}

const FILE_KEYS = [
  '$schema',
  'name',
  'sources',
  'holidays_from',
  'time_zone',
  'hours',
  'half_days',
  'closures',
  'openings',
];
/** What a calendar may be called besides an ISO 3166 code. */
const CUSTOM_CODE = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** As date-holidays writes them, a few of its regions being longer than ISO 3166-2 allows. */
const ISO_CODE = /^[A-Z]{2}(-[A-Z0-9]{1,8}){0,2}$/;

/** True for an ISO 3166 country or subdivision, with the holiday library's region after it. */
export function isIsoCode(code: string): boolean {
  return ISO_CODE.test(code);
}

/** True for the name of a calendar of one's own, like acme-de. */
export function isCustomCode(code: string): boolean {
  return CUSTOM_CODE.test(code);
}

/** Where a calendar's file is, as it is called in messages. */
export function calendarFileName(code: string): string {
  return `config/calendars/${code}.json`;
}

/** Reads the parsed JSON of `config/calendars/<code>.json`; throws CalendarFileError with every fault it finds. */
export function parseCalendarFile(code: string, content: unknown): CalendarFile {
  const faults: CalendarFileFault[] = [];
  const fault = (path: string, message: string) => {
    faults.push({ path, message });
  };
  const file = parseObject(content, { path: '', keys: FILE_KEYS, fault });

  if (!isIsoCode(code) && !isCustomCode(code)) {
    fault(
      '',
      'the file must be named after an ISO 3166 code (DE-BY.json) or a name of your own (acme-de.json)',
    );
  }
  const holidaysFrom = parseText(file, { key: 'holidays_from', fault });
  if (holidaysFrom !== undefined && holidaysFrom !== 'none' && !isIsoCode(holidaysFrom)) {
    fault('/holidays_from', `"${holidaysFrom}" is no jurisdiction: write one like "DE-BY", or "none"`);
  }
  if (holidaysFrom === undefined && !isIsoCode(code)) {
    fault(
      '/holidays_from',
      'is missing: name the jurisdiction whose public holidays count, like "DE-BY", or "none"',
    );
  }
  const hours = parseHours(file.hours, fault);
  const timeZone = parseText(file, { key: 'time_zone', fault });
  const zone = timeZone === undefined ? undefined : findZone(timeZone);
  if (timeZone !== undefined && zone === undefined) {
    const hint = didYouMean(timeZone, Intl.supportedValuesOf('timeZone'));
    fault('/time_zone', `"${timeZone}" is no IANA time zone: write one like "Europe/Berlin".${hint}`);
  }
  const parsed: CalendarFile = {
    name: parseText(file, { key: 'name', fault }),
    sources: parseList(file.sources, '/sources', fault).map((source, index) => {
      if (typeof source !== 'string') fault(`/sources/${index}`, 'must be text: where these facts come from');
      return String(source);
    }),
    holidaysFrom,
    timeZone: zone?.name,
    hours,
    exceptions: parseExceptions(file, fault),
  };
  if (faults.length > 0) throw new CalendarFileError(calendarFileName(code), faults);
  return parsed;
}

type Fault = (path: string, message: string) => void;
type Json = Readonly<Record<string, unknown>>;

function parseHours(value: unknown, fault: Fault): Map<Weekday, Span[]> {
  const hours = new Map<Weekday, Span[]>();
  if (value === undefined) return hours;
  const object = parseObject(value, { path: '/hours', keys: WEEKDAYS, fault });
  for (const weekday of WEEKDAYS) {
    if (object[weekday] !== undefined)
      hours.set(weekday, parseSpans(object[weekday], `/hours/${weekday}`, fault));
  }
  return hours;
}

function parseExceptions(file: Json, fault: Fault): Map<string, DayException> {
  const exceptions = new Map<string, DayException>();
  const read = (list: string, kind: DayException['kind'], keys: readonly string[]) => {
    parseList(file[list], `/${list}`, fault).forEach((entry, index) => {
      const path = `/${list}/${index}`;
      const object = parseObject(entry, { path, keys, fault });
      const date = object.date;
      if (typeof date !== 'string' || !isExceptionDate(date)) {
        fault(
          `${path}/date`,
          `${JSON.stringify(date)} is no date: write "2027-12-24", or "12-24" for every year`,
        );
        return;
      }
      if (exceptions.has(date))
        fault(`${path}/date`, `"${date}" is listed before: keep one entry for a date`);
      if (typeof object.reason !== 'string' || object.reason.trim() === '') {
        fault(`${path}/reason`, 'is missing: an auditor will ask why this day is different');
      }
      if (kind === 'short' && object.hours === undefined)
        fault(`${path}/hours`, 'is missing, like ["09:00-12:00"]');
      const hours =
        object.hours === undefined ? [OFFICE_HOURS] : parseSpans(object.hours, `${path}/hours`, fault);
      if (kind === 'open' && hours.length === 0)
        fault(`${path}/hours`, 'is empty: list the day under closures instead');
      exceptions.set(date, { kind, hours: kind === 'closed' ? [] : hours, reason: String(object.reason) });
    });
  };
  read('closures', 'closed', ['date', 'reason']);
  read('openings', 'open', ['date', 'hours', 'reason']);
  read('half_days', 'short', ['date', 'hours', 'reason']);
  return exceptions;
}

/** A date of one year, or of every year; 02-29 is one of every leap year. */
function isExceptionDate(text: string): boolean {
  return parseDay(/^\d{2}-\d{2}$/.test(text) ? `2000-${text}` : text) !== undefined;
}

/** The two names under which an exception for a date may be listed, the stronger first. */
export function exceptionKeys(isoDate: string): readonly [string, string] {
  return [isoDate, isoDate.slice(5)];
}

function parseSpans(value: unknown, path: string, fault: Fault): Span[] {
  const spans: Span[] = [];
  parseList(value, path, fault).forEach((entry, index) => {
    const span = parseSpan(entry);
    if (typeof span === 'string') fault(`${path}/${index}`, span);
    else if (spans.some((other) => other.from < span.until && span.from < other.until)) {
      fault(`${path}/${index}`, `"${String(entry)}" overlaps another span of the day: make them one`);
    } else spans.push(span);
  });
  return mergeSpans(spans);
}

function parseList(value: unknown, path: string, fault: Fault): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  fault(path, 'must be a list in [ ]');
  return [];
}

function parseText(file: Json, at: { key: string; fault: Fault }): string | undefined {
  const value = file[at.key];
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  at.fault(`/${at.key}`, 'must be text');
  return undefined;
}

function parseObject(value: unknown, at: { path: string; keys: readonly string[]; fault: Fault }): Json {
  if (!isMembers(value)) {
    at.fault(at.path, `must be an object with ${at.keys.join(', ')}`);
    return {};
  }
  for (const key of Object.keys(value)) {
    if (!at.keys.includes(key)) {
      const hint = didYouMean(key, at.keys) || ` Known are ${at.keys.join(', ')}.`;
      at.fault(`${at.path}/${pointerPart(key)}`, `is not known.${hint}`);
    }
  }
  return value as Json;
}
