import { BrokerRefusal } from '../broker/connection.ts';
import { connectPublisher, type Publisher } from '../broker/publisher.ts';
import { namesOf } from '../broker/topology.ts';
import { type Announcer, createAnnouncer } from '../pipeline/announce.ts';
import { createDeliveryOperator, type DeliveryOperator } from '../pipeline/operate/deliveries.ts';
import type { Log } from '../runtime/log.ts';
import { reasonOf } from '../runtime/outage.ts';
import { requireMigrated } from '../store/migrate.ts';
import { openPool, type Pool } from '../store/pool.ts';
import { complain } from './complain.ts';
import type { Context } from './context.ts';

/** A command that holds a lock has a connection for it while it works on others; none holds two. */
const LOCKS = 1;

/** Opens the database; throws when it is not at the version of this program. */
export async function openDatabase({ scope, config, log }: Context): Promise<Pool> {
  const { database } = config;
  const withLocks = { ...database, poolSize: database.poolSize + LOCKS };
  const pool = scope.own(openPool(withLocks, log), (p) => p.end());
  await requireMigrated(pool);
  return pool;
}

/** What people do to deliveries, and the database it is done in; a broker that is away stops nothing. */
export async function openDeliveryOperator(
  context: Context,
): Promise<{ readonly operator: DeliveryOperator; readonly pool: Pool }> {
  const { config } = context;
  const pool = await openDatabase(context);
  const { announcer, publisher } = await openAnnouncing(context);
  const operator = createDeliveryOperator({
    pool,
    publisher,
    announcer,
    deliveriesQueue: namesOf(config.broker.prefix).deliveries,
    timeoutMs: config.egress.timeoutMs,
  });
  return { operator, pool };
}

const LATER = 'the reconciler announces it when the broker is back';

/** Opens what announces; see `openAnnouncing`. */
export async function openAnnouncer(context: Context): Promise<Announcer> {
  return (await openAnnouncing(context)).announcer;
}

interface Announcing {
  readonly announcer: Announcer;
  readonly publisher: Pick<Publisher, 'countReady'>;
}

/**
 * Opens what announces. A broker that is away is told on stderr and stops nothing: rows come first, and the reconciler
 * announces them.
 */
async function openAnnouncing({ scope, config, log }: Context): Promise<Announcing> {
  let publisher: Publisher;
  try {
    publisher = await scope.own(connectPublisher(config.broker, quiet(log)), (p) => p.close());
  } catch (error) {
    if (!(error instanceof BrokerRefusal)) throw error;
    complain(`the broker refuses us (${reasonOf(error)}): what is stored waits, ${LATER}`);
    return { announcer: NOBODY, publisher: { countReady: () => Promise.resolve(undefined) } };
  }
  if (!publisher.isReady()) complain(`the broker does not answer: what is stored waits, ${LATER}`);
  const isThere = publisher.isReady();
  const announcer = createAnnouncer({
    publisher,
    log: quiet(log),
    horizonMs: config.horizonMs,
    feederIntervalMs: config.feeder.intervalMs,
  });
  scope.onStop(async () => {
    await announcer.drain();
    const { failed } = announcer.counters;
    if (isThere && failed > 0) complain(`${failed} wake-ups were not taken: ${LATER}`);
  });
  return { announcer, publisher };
}

/** Announces nothing; for what needs nobody to wake up. */
export const NOBODY: Announcer = {
  announce: () => Promise.resolve(),
  announceNow: () => Promise.resolve(),
  drain: () => Promise.resolve(),
  reachMs: Number.POSITIVE_INFINITY,
  counters: { failed: 0, skipped: 0 },
};

/** A lost broker is told in one line of our own, not with a stack. */
function quiet(log: Log): Log {
  return {
    ...log,
    fault: (event, error, fields) => log.debug(event, { ...fields, reason: reasonOf(error) }),
  };
}
