import { BrokerRefusal } from '../broker/connection.ts';
import { connectPublisher, type Publisher } from '../broker/publisher.ts';
import { type Announcer, createAnnouncer } from '../pipeline/announce.ts';
import type { Log } from '../runtime/log.ts';
import { requireMigrated } from '../store/migrate.ts';
import { openPool, type Pool } from '../store/pool.ts';
import { complain, reasonOf } from './complain.ts';
import type { Context } from './context.ts';

/** Opens the database; throws when it is not at the version of this program. */
export async function openDatabase({ scope, config, log }: Context): Promise<Pool> {
  const pool = scope.own(openPool(config.database, log), (p) => p.end());
  await requireMigrated(pool);
  return pool;
}

const LATER = 'the reconciler announces it when the broker is back';

/**
 * Opens what announces. A broker that is away is told on stderr and stops nothing: rows come first, and the reconciler
 * announces them.
 */
export async function openAnnouncer({ scope, config, log }: Context): Promise<Announcer> {
  let publisher: Publisher;
  try {
    publisher = await scope.own(connectPublisher(config.broker, quiet(log)), (p) => p.close());
  } catch (error) {
    if (!(error instanceof BrokerRefusal)) throw error;
    complain(`the broker refuses us (${reasonOf(error)}): what is stored waits, ${LATER}`);
    return NOBODY;
  }
  if (!publisher.isReady()) complain(`the broker does not answer: what is stored waits, ${LATER}`);
  const isThere = publisher.isReady();
  const announcer = createAnnouncer({
    publisher,
    log: quiet(log),
    horizonMs: config.horizonMs,
    feederIntervalMs: config.feeder.intervalMs,
  });
  return scope.own(announcer, async (a) => {
    await a.drain();
    if (isThere && a.counters.failed > 0) complain(`${a.counters.failed} wake-ups were not taken: ${LATER}`);
  });
}

/** Announces nothing; for what needs nobody to wake up. */
export const NOBODY: Announcer = {
  announce: () => undefined,
  announceNow: () => Promise.resolve(),
  drain: () => Promise.resolve(),
  counters: { failed: 0, skipped: 0 },
};

/** A lost broker is told in one line of our own, not with a stack. */
function quiet(log: Log): Log {
  return {
    ...log,
    fault: (event, error, fields) => log.debug(event, { ...fields, reason: reasonOf(error) }),
  };
}
