import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { connectPublisher, type Publisher } from '../broker/publisher.ts';
import { type Calendars, createCalendars } from '../domain/calendar/calendars.ts';
import { createTargetRules } from '../egress/target-rules.ts';
import { type Announcer, createAnnouncer } from '../pipeline/announce.ts';
import { createEndpointOperator, type EndpointOperator } from '../pipeline/operate/endpoints.ts';
import { createSecretBox } from '../pipeline/secrets.ts';
import { createRescheduler, type Rescheduler } from '../pipeline/timing/reschedule.ts';
import { type Config, loadCalendarSource } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import type { Meters } from '../runtime/metrics.ts';
import type { Scope } from '../runtime/scope.ts';
import type { Traces } from '../runtime/traces.ts';
import { openPool, type Pool } from '../store/pool.ts';
import type { Readiness } from './readiness.ts';

/** What every role and command stands on: the database, the way to the broker, and what announces. */
export interface Parts {
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly announcer: Announcer;
}

/** What the roles of one process share. */
export interface Shared {
  readonly meters: Meters;
  /** Undefined: none are made. */
  readonly traces: Traces | undefined;
  readonly readiness: Readiness;
}

/** Opens the parts in order; the scope closes them in the reverse one. */
export async function openParts(scope: Scope, config: Config, log: Log): Promise<Parts> {
  const pool = scope.own(openPool(config.database, log), (p) => p.end());
  const publisher = await scope.own(connectPublisher(config.broker, log), (p) => p.close());
  const announcer = scope.own(
    createAnnouncer({
      publisher,
      log,
      horizonMs: config.horizonMs,
      feederIntervalMs: config.feeder.intervalMs,
    }),
    (a) => a.drain(),
  );
  return { pool, publisher, announcer };
}

/** What people do to endpoints, on these parts. */
export function openEndpointOperator(
  parts: Pick<Parts, 'pool' | 'announcer'>,
  config: Config,
): EndpointOperator {
  return createEndpointOperator({
    pool: parts.pool,
    announcer: parts.announcer,
    box: createSecretBox(config.masterKey, config.previousMasterKeys),
    targetRules: createTargetRules(config.egress),
    timeoutMs: config.egress.timeoutMs,
  });
}

/** What moves and cancels reminders, on these parts. */
export function openRescheduler(
  parts: Pick<Parts, 'pool' | 'announcer'>,
  config: Config,
  calendars: Calendars = openCalendars(config),
): Rescheduler {
  return createRescheduler({ ...parts, calendars, timeoutMs: config.egress.timeoutMs });
}

/** The calendars of this installation. */
export function openCalendars(config: Config): Calendars {
  const holidays = createRequire(import.meta.url)('date-holidays/package.json') as { version: string };
  return createCalendars({
    source: loadCalendarSource(config.calendarsDir),
    tzVersion: process.versions.tz ?? 'unknown',
    holidayLibraryVersion: holidays.version,
  });
}

/** A name for whoever holds claims: unique per process, and telling where to look for it. */
export function holderName(role: string): string {
  return `${role}@${hostname()}#${process.pid}-${randomBytes(3).toString('hex')}`;
}
