import { readdirSync } from 'node:fs';
import { isTzAtLeast } from '../../domain/calendar/zone.ts';
import { openCalendars } from '../../roles/parts.ts';
import type { Config } from '../../runtime/config.ts';
import { DEVELOPMENT_MASTER_KEY } from '../../runtime/config-checks.ts';
import { reasonOf } from '../../runtime/outage.ts';
import { type Finding, ok, warning, wrong } from './finding.ts';

/** One is enough to work, since what holds a lock has a connection of its own; with few, statements wait for each other. */
const COMFORTABLE_POOL = 5;
const SCHEMA = 'calendar.schema.json';

/** Everything that needs neither server. */
export function checkHost(config: Config): Finding[] {
  return [checkTimeZones(config), checkCalendars(config), checkPool(config), checkPrefetch(config)];
}

function checkTimeZones({ tz }: Config): Finding {
  const check = 'time zone data';
  const version = process.versions.tz;
  return isTzAtLeast(version, tz.minimumVersion)
    ? ok(check, `${version}, at least ${tz.minimumVersion} is wanted`)
    : wrong(
        check,
        `${version ?? 'an unknown version'} is older than ${tz.minimumVersion}`,
        'install a newer release of Node.js, which brings the data along',
      );
}

function checkCalendars(config: Config): Finding {
  const check = 'calendars';
  try {
    const codes = readdirSync(config.calendarsDir)
      .filter((name) => name.endsWith('.json') && name !== SCHEMA)
      .map((name) => name.slice(0, -'.json'.length));
    const calendars = openCalendars(config);
    const faults = codes.flatMap((code) => {
      try {
        calendars.describe(code);
        return [];
      } catch (error) {
        return reasonOf(error).split('\n');
      }
    });
    if (faults.length === 0) return ok(check, `${codes.length} files in ${config.calendarsDir} can be used`);
    return wrong(
      check,
      faults.join('; '),
      'mend the file; calendar.schema.json beside it says what may be in it',
    );
  } catch (error) {
    return wrong(check, reasonOf(error), 'set DUEPOST_CALENDARS_DIR to a folder that can be read');
  }
}

function checkPool({ database }: Config): Finding {
  const check = 'pool size';
  const detail = `up to ${database.poolSize} connections for each role of a process`;
  return database.poolSize >= COMFORTABLE_POOL
    ? ok(check, detail)
    : warning(
        check,
        `${detail}: enough to work, but statements wait for each other`,
        `where load is to be expected, set DUEPOST_DATABASE_POOL_SIZE to ${COMFORTABLE_POOL} or more`,
      );
}

function checkPrefetch({ worker }: Config): Finding {
  const check = 'prefetch';
  const detail = `a worker holds ${worker.prefetch} wake-ups and makes up to ${worker.maxPerEndpoint} calls to an endpoint`;
  return worker.prefetch >= 2 * worker.maxPerEndpoint
    ? ok(check, detail)
    : warning(
        check,
        `${detail}: one slow endpoint can hold up all others`,
        'set DUEPOST_WORKER_PREFETCH to several times DUEPOST_WORKER_MAX_PER_ENDPOINT',
      );
}

/** The key that stands in the source is for trials. */
export function checkKeyChoice({ env, masterKey }: Config): Finding[] {
  if (!masterKey.equals(Buffer.from(DEVELOPMENT_MASTER_KEY, 'base64'))) return [];
  return [
    warning(
      'master key',
      `${env} uses the development key, which everyone can read`,
      'fine for trials; for anything else set DUEPOST_MASTER_KEY (openssl rand -base64 32)',
    ),
  ];
}
