import { refuseField } from '../refusal.ts';
import { firstBusinessInstant, MAX_CLOSED_DAYS } from './business-hours.ts';
import type { Calendar } from './calendar.ts';
import { DAY_MS, type Day, isoDate, parseDay, spokenDate, yearOf } from './dates.ts';
import { FIRST_HOLIDAY_YEAR, isHolidayYear, LAST_HOLIDAY_YEAR } from './holidays.ts';
import { formatMinute, formatSpan } from './hours.ts';
import { countBack, parsePeriod } from './notice.ts';
import { isRepeated, localTime, startOfDay, wallAt, type Zone } from './zone.ts';

/** What a reminder says about its time. */
export interface DueRequest {
  /** YYYY-MM-DD. */
  readonly renewalDate: string;
  /** P30D, P1M15D, P10B. */
  readonly noticePeriod: string;
  /** An ISO 3166 code, or the name of a calendar file. */
  readonly jurisdiction: string;
  /** IANA name; undefined: the calendar's own, where it has exactly one. */
  readonly timeZone?: string | undefined;
  /** A period before the start of the renewal date; undefined: that start itself, unless `deadlineAt` is given. */
  readonly deadline?: string | undefined;
  readonly deadlineAt?: Date | undefined;
}

/** One step of the computation, as a person would tell it. */
export interface DueStep {
  readonly rule: 'renewal_date' | 'notice_period' | 'closed' | 'opening' | 'within_hours' | 'deadline';
  /** RFC 3339 with the zone's offset. */
  readonly local: string;
  /** RFC 3339 in UTC. */
  readonly instant: string;
  readonly note: string;
}

/** A computed time with the road to it; computing it again from the same request and calendar gives the same. */
export interface DueComputation {
  readonly dueAt: Date;
  readonly deadlineAt: Date;
  readonly steps: readonly DueStep[];
  /** The calendar years that the computation looked at, in order. */
  readonly years: readonly number[];
}

/** Computes when a reminder is due; throws a Refusal that names the member at fault and the remedy. */
export function computeDue(request: DueRequest, calendar: Calendar, zone: Zone): DueComputation {
  const renewal = readRenewalDate(request.renewalDate);
  const notice = subtract(renewal, { path: '/notice_period', period: request.noticePeriod, calendar });
  const rawAt = startOfDay(zone, notice.day);
  const dueAt = firstBusinessInstant(calendar, zone, rawAt);
  if (dueAt === undefined) {
    const message = `the calendar ${calendar.code} has no opening hours in the ${MAX_CLOSED_DAYS} days from ${isoDate(notice.day)}: give it some in its file`;
    throw refuseField('/jurisdiction', message);
  }
  const dueDay = Math.floor(wallAt(zone, dueAt) / DAY_MS);
  const deadline = decideDeadline(request, { renewal, calendar, zone });
  const first = Math.min(yearOf(notice.day), yearOf(deadline.day ?? renewal));
  const last = Math.max(yearOf(renewal), yearOf(dueDay));

  const step = (rule: DueStep['rule'], at: Date, note: string): DueStep => ({
    rule,
    local: localTime(zone, at),
    instant: at.toISOString(),
    note,
  });
  const closed: DueStep[] = [];
  // From the date that the wall shows: a date that the clock skips was not closed, it never was.
  const rawDay = Math.floor(wallAt(zone, rawAt) / DAY_MS);
  for (let day = rawDay; day < dueDay; day += 1) {
    const at = day === rawDay ? rawAt : startOfDay(zone, day);
    closed.push(step('closed', at, tellClosed(day, calendar)));
  }
  const moved = dueAt.getTime() !== rawAt.getTime();
  const steps = [
    step(
      'renewal_date',
      startOfDay(zone, renewal),
      `The contract renews on ${spokenDate(renewal)} (${zone.name}).`,
    ),
    step('notice_period', rawAt, `${notice.note}${tellClockChange(zone, rawAt, notice.day * DAY_MS)}`),
    ...closed,
    step(moved ? 'opening' : 'within_hours', dueAt, tellOpening(dueAt, { calendar, zone, moved })),
    step('deadline', deadline.at, deadline.note),
  ];
  const years = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return { dueAt, deadlineAt: deadline.at, steps, years };
}

function readRenewalDate(text: string): Day {
  const day = parseDay(text);
  if (day === undefined) {
    const message = `renewal_date ${JSON.stringify(text)} is not a real date: write it as YYYY-MM-DD`;
    throw refuseField('/renewal_date', message);
  }
  if (!isHolidayYear(yearOf(day))) {
    const message = `renewal_date ${text} is out of reach: public holidays are known from ${FIRST_HOLIDAY_YEAR} to ${LAST_HOLIDAY_YEAR}`;
    throw refuseField('/renewal_date', message);
  }
  return day;
}

function subtract(
  start: Day,
  of: { path: string; period: string; calendar: Calendar },
): { day: Day; note: string } {
  const period = parsePeriod(of.period);
  if (typeof period === 'string') throw refuseField(of.path, `${of.path.slice(1)} ${period}`);
  const { day, note } = countBack(start, period, (each) => of.calendar.dayAt(each).hours.length > 0);
  if (day === undefined) {
    const message = `the calendar ${of.calendar.code} cannot count ${of.period} back: ${note}; give it opening hours in its file`;
    throw refuseField('/jurisdiction', message);
  }
  return { day, note };
}

function decideDeadline(
  request: DueRequest,
  from: { renewal: Day; calendar: Calendar; zone: Zone },
): { at: Date; day: Day | undefined; note: string } {
  const { deadline, deadlineAt } = request;
  if (deadlineAt !== undefined) {
    if (deadline !== undefined)
      throw refuseField('/deadline', 'give either deadline or deadline_at, not both');
    if (Number.isNaN(deadlineAt.getTime()))
      throw refuseField('/deadline_at', 'deadline_at is no RFC 3339 time');
    return { at: deadlineAt, day: undefined, note: 'The deadline was given as this instant.' };
  }
  if (deadline === undefined) {
    const at = startOfDay(from.zone, from.renewal);
    return { at, day: from.renewal, note: 'No deadline was given, so it is the start of the renewal date.' };
  }
  const { day, note } = subtract(from.renewal, {
    path: '/deadline',
    period: deadline,
    calendar: from.calendar,
  });
  return { at: startOfDay(from.zone, day), day, note: `The deadline is the start of that day: ${note}` };
}

function tellClosed(day: Day, calendar: Calendar): string {
  const { hours, reason } = calendar.dayAt(day);
  if (hours.length === 0) return `${spokenDate(day)} is closed: ${reason}.`;
  return `${spokenDate(day)} has no opening hours left (${hours.map(formatSpan).join(', ')}).`;
}

function tellOpening(dueAt: Date, where: { calendar: Calendar; zone: Zone; moved: boolean }): string {
  const wall = wallAt(where.zone, dueAt);
  const day = Math.floor(wall / DAY_MS);
  const minute = (wall - day * DAY_MS) / 60_000;
  const time = formatMinute(minute);
  const { hours, reason } = where.calendar.dayAt(day);
  const because = reason === '' ? '' : ` (${reason})`;
  if (!where.moved) {
    const open = hours.map(formatSpan).join(', ');
    return `${spokenDate(day)} is open ${open}${because}; ${time} is inside, so nothing is rounded.`;
  }
  const span = hours.find((each) => minute < each.until);
  const change = tellClockChange(where.zone, dueAt, day * DAY_MS + (span?.from ?? minute) * 60_000);
  return `${spokenDate(day)} opens at ${time}${because}; that is the first business hour.${change}`;
}

/** What the clock did to a wanted wall time, or nothing. */
function tellClockChange(zone: Zone, at: Date, wantedWallMs: number): string {
  const wanted = formatMinute((((wantedWallMs % DAY_MS) + DAY_MS) % DAY_MS) / 60_000);
  const wentForward = zone.offsetAt(at.getTime() - 1) < zone.offsetAt(at.getTime());
  if (wentForward && wallAt(zone, at) > wantedWallMs) {
    return ` The clock goes forward over ${wanted}, so the first instant after the gap counts.`;
  }
  return isRepeated(zone, at)
    ? ` The clock is put back and shows ${wanted} twice; the first one counts.`
    : '';
}
