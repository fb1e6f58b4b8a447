import type { Consumer } from '../broker/consumer.ts';
import type { Publisher } from '../broker/publisher.ts';
import type { Names } from '../broker/topology.ts';
import { isTzAtLeast } from '../domain/calendar/zone.ts';
import type { ReadinessReport } from '../http/routes/operation.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import { startLoop } from '../runtime/loop.ts';
import type { Stop } from '../runtime/scope.ts';
import { requireMigrated } from '../store/migrate.ts';
import { isAlive } from '../store/pool.ts';
import type { Parts } from './parts.ts';

/** Says why something is not ready; undefined: it is. What it throws is told to nobody, for it may hold addresses. */
export type Probe = () => Promise<string | undefined> | string | undefined;

/** What a process needs before it is of use; every role adds what it stands on. */
export interface Readiness {
  /** Several probes of one name are one check, which wants all of them. */
  add(name: string, probe: Probe): void;
  check(): Promise<ReadinessReport>;
}

const NOT_IN_ORDER = 'not in order';
const NO_ANSWER = 'does not answer';
const PROBE_LIMIT_MS = 2_000;
/** Whoever asks more often gets the last answer: asking needs no key and must cost nothing. */
const FRESH_MS = 1_000;
const WATCH_EVERY_MS = 5_000;

export function createReadiness(config: Pick<Config, 'tz'>): Readiness {
  const probes: { readonly name: string; readonly probe: Probe }[] = [];
  let latest: { readonly atMs: number; readonly report: Promise<ReadinessReport> } | undefined;

  async function ask(): Promise<ReadinessReport> {
    const checks: Record<string, string> = {};
    const answers = await Promise.all(
      probes.map(async ({ name, probe }) => ({ name, reason: await askOne(probe) })),
    );
    for (const { name, reason } of answers) {
      if (reason !== undefined || checks[name] === undefined) checks[name] = reason ?? 'ok';
    }
    return { ready: answers.every(({ reason }) => reason === undefined), checks };
  }

  const readiness: Readiness = {
    add(name, probe) {
      probes.push({ name, probe });
      latest = undefined;
    },
    check() {
      const nowMs = performance.now();
      if (latest === undefined || nowMs - latest.atMs > FRESH_MS) latest = { atMs: nowMs, report: ask() };
      return latest.report;
    },
  };
  readiness.add('time_zone_data', () => judgeTimeZoneData(config.tz.minimumVersion));
  return readiness;
}

/** Logs once when the process is not ready, or for other reasons than before, and once when it is again. */
export function watchReadiness(readiness: Readiness, log: Log): Stop {
  let told = '[]';
  return startLoop({
    pauseMs: WATCH_EVERY_MS,
    onEpisode: (episode) => {
      if (episode.kind === 'begins') log.fault('readiness_failed', episode.error);
    },
    pass: async () => {
      const { ready, checks } = await readiness.check();
      const missing = Object.entries(checks).filter(([, reason]) => reason !== 'ok');
      const text = JSON.stringify(missing);
      if (text === told) return;
      told = text;
      if (ready) log.info('ready');
      else log.warn('not_ready', Object.fromEntries(missing));
    },
  });
}

/** What every role stands on: the database, its migrations, the way to the broker and what must be there. */
export function addPartsProbes(readiness: Readiness, { pool, publisher }: Parts, names: Names): void {
  readiness.add('database', async () => ((await isAlive(pool)) ? undefined : NO_ANSWER));
  readiness.add('migrations', async () => {
    await requireMigrated(pool);
    return undefined;
  });
  readiness.add('broker', () => (publisher.isReady() ? undefined : 'not connected'));
  // A broker that lost its disk comes back empty. Roles may lack the right to declare, and queues that were deleted on
  // purpose are not theirs to bring back: a person does.
  readiness.add('topology', async () => {
    if (!publisher.isReady()) return 'not known without the broker';
    for (const queue of [names.deliveries, names.commandsQueue]) {
      if (await isMissing(publisher, queue))
        return `the queue ${queue} is missing: run duepost topology apply`;
    }
    return undefined;
  });
}

/** Whether a role's consumer takes what comes; what it cannot take goes to the queue `setAside`. */
export function addConsumerProbe(
  readiness: Readiness,
  role: string,
  { consumer, queue, setAside }: { consumer: Consumer; queue: string; setAside: string },
): void {
  readiness.add(role, () => {
    if (!consumer.isAttached()) return `takes nothing from ${queue}`;
    return consumer.isBlocked()
      ? `takes nothing from ${queue}: what it has taken waits for room in ${setAside}`
      : undefined;
  });
}

/** A broker that goes away meanwhile is another check's. */
function isMissing(publisher: Publisher, queue: string): Promise<boolean> {
  return publisher.countReady(queue).then(
    (count) => count === undefined,
    () => false,
  );
}

async function askOne(probe: Probe): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(NO_ANSWER), PROBE_LIMIT_MS);
  });
  try {
    return await Promise.race([Promise.resolve(probe()), late]);
  } catch {
    return NOT_IN_ORDER;
  } finally {
    clearTimeout(timer);
  }
}

function judgeTimeZoneData(minimum: string): string | undefined {
  const version = process.versions.tz ?? 'unknown';
  if (isTzAtLeast(version, minimum)) return undefined;
  return `version ${version}, ${minimum} is the oldest that is accepted`;
}
