import type { QueueState } from '../../broker/inspect-queues.ts';
import type { Publisher } from '../../broker/publisher.ts';
import type { Names } from '../../broker/topology.ts';
import { FAILING_AFTER } from '../../domain/at-risk.ts';
import { STATES } from '../../domain/state.ts';
import type { Meters, Reading } from '../../runtime/metrics.ts';
import type { Pool } from '../../store/pool.ts';
import {
  type Backlog,
  type Condition,
  countDeliveries,
  countEndpoints,
  measureBacklog,
  type Pulse,
  readPulse,
  type StateCounts,
} from '../../store/watch/states.ts';

/** No reading counts more rows than this. */
export const COUNTED_AT_MOST = 10_000;

const CONDITIONS: readonly Condition[] = ['ok', 'failing', 'paused', 'disabled'];

/** What is seen in the database, on its own: a broker that is away hides none of it. */
export interface DatabaseView extends StateCounts, Backlog, Pulse {
  readonly endpoints: ReadonlyMap<Condition, number>;
  /** How far the host's clock is ahead of the database's; the way there and back is halved. */
  readonly clockSkewMs: number;
}

/** Reads what the database tells about the state of things, in a handful of bounded statements. */
export async function viewDatabase(pool: Pool): Promise<DatabaseView> {
  const counts = await countDeliveries(pool, COUNTED_AT_MOST);
  const backlog = await measureBacklog(pool, { atMost: COUNTED_AT_MOST, failingAfter: FAILING_AFTER });
  const endpoints = await countEndpoints(pool, FAILING_AFTER);
  const askedAtMs = Date.now();
  const pulse = await readPulse(pool, COUNTED_AT_MOST);
  const clockSkewMs = (askedAtMs + Date.now()) / 2 - pulse.databaseNowMs;
  return { ...counts, ...backlog, ...pulse, endpoints, clockSkewMs };
}

/** The queues worth watching, by the part of their name that follows the prefix and version. */
export function watchedQueues(names: Names): ReadonlyMap<string, string> {
  const queues = [
    names.deliveries,
    names.commandsQueue,
    names.commandsRejected,
    names.poison,
    names.unrouted,
    names.deadLetters,
    ...names.tiers,
  ];
  const cut = names.deliveries.length - 'deliveries'.length;
  return new Map(queues.map((queue) => [queue, queue.slice(cut)]));
}

/** What is seen at the broker, by short name of the queue. */
export async function viewBroker(publisher: Publisher, names: Names): Promise<Map<string, QueueState>> {
  const watched = watchedQueues(names);
  const states = await publisher.inspectQueues([...watched.keys()]);
  return new Map([...states].map(([queue, state]) => [watched.get(queue) ?? queue, state]));
}

export interface ObserverOptions {
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly names: Names;
  readonly meters: Meters;
}

/** Looks at the database and the broker now and then, and tells the meters what it saw. */
export interface Observer {
  /** Both looks are taken, even if one fails; then the first failure is thrown. */
  observe(): Promise<void>;
}

/** What was seen so long ago is no longer told: a gauge that stands still would look like health. */
const STALE_MS = 60_000;

interface Seen<T> {
  readonly atMs: number;
  readonly view: T;
}

export function createObserver({ pool, publisher, names, meters }: ObserverOptions): Observer {
  let database: Seen<DatabaseView> | undefined;
  let broker: Seen<Map<string, QueueState>> | undefined;

  function* fromDatabase(read: (view: DatabaseView) => Iterable<Reading>): Iterable<Reading> {
    if (database !== undefined && performance.now() - database.atMs < STALE_MS) yield* read(database.view);
  }
  function* fromBroker(read: (queue: string, state: QueueState) => Iterable<Reading>): Iterable<Reading> {
    if (broker === undefined || performance.now() - broker.atMs >= STALE_MS) return;
    for (const [queue, state] of broker.view) yield* read(queue, state);
  }

  meters.source('duepost_deliveries', () =>
    fromDatabase((view) => STATES.map((state): Reading => [[state], view.counts[state]])),
  );
  meters.source('duepost_oldest_due_age_seconds', () =>
    fromDatabase(({ oldestMs }) => [
      [['ok'], oldestMs.ok / 1000],
      [['failing'], oldestMs.failing / 1000],
    ]),
  );
  meters.source('duepost_overdue_deliveries', () =>
    fromDatabase(({ overdue }) => [
      [['ok'], overdue.ok],
      [['failing'], overdue.failing],
    ]),
  );
  meters.source('duepost_at_risk_deliveries', () => fromDatabase(({ atRisk }) => [[[], atRisk]]));
  meters.source('duepost_endpoints', () =>
    fromDatabase(({ endpoints }) => CONDITIONS.map((c): Reading => [[c], endpoints.get(c) ?? 0])),
  );
  meters.source('duepost_notices_waiting', () =>
    fromDatabase(({ noticesWaiting }) => [[[], noticesWaiting]]),
  );
  meters.source('duepost_watermark_lead_seconds', () =>
    fromDatabase(({ watermarkLeadMs }) => [[[], watermarkLeadMs / 1000]]),
  );
  meters.source('duepost_clock_skew_seconds', () =>
    fromDatabase(({ clockSkewMs }) => [[[], clockSkewMs / 1000]]),
  );
  meters.source('duepost_queue_messages', () => fromBroker((queue, { ready }) => [[[queue], ready]]));
  meters.source('duepost_queue_consumers', () =>
    fromBroker((queue, { consumers }) =>
      queue === 'deliveries' || queue === 'commands' ? [[[queue], consumers]] : [],
    ),
  );

  return {
    async observe() {
      const looks = await Promise.allSettled([
        viewDatabase(pool).then((view) => {
          database = { atMs: performance.now(), view };
        }),
        viewBroker(publisher, names).then((view) => {
          broker = { atMs: performance.now(), view };
        }),
      ]);
      for (const look of looks) if (look.status === 'rejected') throw look.reason;
    },
  };
}
