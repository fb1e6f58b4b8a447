import { setImmediate } from 'node:timers/promises';
import type { Calendars } from '../../domain/calendar/calendars.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import { type Coverage, coverageOf, judgePeriod } from '../../domain/shadow/coverage.ts';
import {
  type Expected,
  type ReconciledRow,
  reconcileShadow,
  type Shadowed,
} from '../../domain/shadow/reconcile.ts';
import { findEndpoint } from '../../store/endpoints.ts';
import type { Queryable } from '../../store/pool.ts';
import {
  listShadowEndpoints,
  listShadowed,
  type ShadowEndpoint,
  type ShadowedReminder,
} from '../../store/shadow.ts';
import { timingOf } from '../timing/timing.ts';

export interface ShadowReportRequest {
  readonly from: Date;
  readonly to: Date;
  /** The old system's list; undefined: there is none. */
  readonly expected: readonly Expected[] | undefined;
  /** An endpoint's id or name; undefined: every endpoint in shadow mode. */
  readonly endpoint: string | undefined;
}

export interface ShadowReportOptions {
  readonly db: Queryable;
  readonly calendars: Calendars;
  /** Whether every endpoint is treated as one in shadow mode. */
  readonly shadowAll: boolean;
}

/** What shadow mode has shown of a period. */
export interface ShadowReport {
  readonly from: Date;
  readonly to: Date;
  readonly generatedAt: Date;
  readonly endpoints: readonly ShadowEndpoint[];
  readonly hasExpected: boolean;
  readonly rows: readonly ReconciledRow[];
  readonly coverage: Coverage;
  readonly passed: boolean;
  /** Why it has not passed. */
  readonly reasons: readonly string[];
}

const PAGE = 500;
/** What is due this close to the period may have been moved over its edge. */
const EDGE_MS = 14 * 86_400_000;
const LONGEST_MS = 366 * 86_400_000;

/**
 * Reconciles what shadow mode did in a period, delivery by delivery, with the calendar, computed anew from what was asked
 * for, and with the old system's list.
 */
export async function reportShadow(
  request: ShadowReportRequest,
  options: ShadowReportOptions,
): Promise<ShadowReport> {
  const { from, to, expected } = request;
  requirePeriod(from, to);
  const { db, calendars } = options;
  const { endpoints: inShadow, now } = await listShadowEndpoints(db, { all: options.shadowAll });
  const endpoints = request.endpoint === undefined ? inShadow : [await findNamed(db, request.endpoint)];
  const ours: Shadowed[] = [];
  for (const { endpointId } of endpoints) {
    for (let after = ''; ; ) {
      const page = await listShadowed(db, {
        endpointId,
        all: options.shadowAll,
        from: new Date(from.getTime() - EDGE_MS),
        to: new Date(to.getTime() + EDGE_MS),
        after,
        limit: PAGE,
      });
      ours.push(...page.map((reminder) => toShadowed(reminder, calendars)));
      // A page of computations takes a while; an API has others to answer.
      await setImmediate();
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last.deliveryId;
    }
  }
  const rows = reconcileShadow({ ours, expected, from, to, now });
  const coverage = coverageOf(rows, {
    from,
    to,
    describe: createDescriber(calendars),
  });
  const hasExpected = expected !== undefined;
  const reasons = judgePeriod({ rows, coverage, hasExpected, to, now });
  const passed = reasons.length === 0;
  return { from, to, generatedAt: now, endpoints, hasExpected, rows, coverage, passed, reasons };
}

function requirePeriod(from: Date, to: Date): void {
  if (from >= to) throw refuseField('/to', 'to must be later than from');
  if (to.getTime() - from.getTime() > LONGEST_MS) throw refuseField('/to', 'a report spans a year at most');
}

async function findNamed(db: Queryable, reference: string): Promise<ShadowEndpoint> {
  const endpoint = await findEndpoint(db, reference);
  if (endpoint === undefined)
    throw refuseField('/endpoint', `there is no endpoint ${reference}`, 'not_found');
  return endpoint;
}

function toShadowed(reminder: ShadowedReminder, calendars: Calendars): Shadowed {
  return {
    deliveryId: reminder.deliveryId,
    reminderId: reminder.reminderId,
    contractRef: reminder.contractRef,
    renewalDate: reminder.renewalDate,
    jurisdiction: reminder.jurisdiction,
    timeZone: reminder.timeZone,
    dueAt: reminder.scheduledAt,
    recomputedAt: recompute(reminder, calendars),
    state: reminder.state,
    effects: reminder.effects,
    firstAttemptAt: reminder.firstAttemptAt,
  };
}

function recompute(reminder: ShadowedReminder, calendars: Calendars): Date | string {
  try {
    return calendars.computeDue(timingOf(reminder)).dueAt;
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

/** A year of a calendar is described once, not once per day. */
function createDescriber(calendars: Calendars): Parameters<typeof coverageOf>[1]['describe'] {
  const known = new Map<string, ReturnType<Calendars['describe']>>();
  return (jurisdiction, timeZone, year) => {
    const key = `${jurisdiction} ${timeZone} ${year}`;
    const described = known.get(key) ?? calendars.describe(jurisdiction, { timeZone, year });
    known.set(key, described);
    return described;
  };
}
