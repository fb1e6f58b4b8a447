import pg from 'pg';
import type { Config } from '../runtime/config.ts';
import { createEpisodes } from '../runtime/episode.ts';
import type { Log } from '../runtime/log.ts';
import { isOutage } from '../runtime/outage.ts';

/** What a statement runs on: the pool, or one client within a transaction. */
export interface Queryable {
  query<R extends pg.QueryResultRow>(query: pg.QueryConfig<unknown[]>): Promise<pg.QueryResult<R>>;
}

export type Pool = pg.Pool;

/** How much longer the client waits than the server's own statement timeout before it calls the connection dead. */
const CLIENT_GRACE_MS = 2_000;

/**
 * Opens a pool of connections; the first one is made by the first statement.
 *
 * A connection that dies idle is logged, once until there is a new one, and replaced; one that is silent (half-open) fails its statement after the
 * statement timeout plus two seconds and is destroyed.
 */
export function openPool(config: Config['database'], log: Log): Pool {
  const pool = new pg.Pool({
    connectionString: config.url,
    max: config.poolSize,
    application_name: 'duepost',
    keepAlive: true,
    connectionTimeoutMillis: config.statementTimeoutMs,
    query_timeout: config.statementTimeoutMs + CLIENT_GRACE_MS,
    options: settings(config.statementTimeoutMs),
  });
  // Without a listener, the death of an idle connection ends the process.
  const losses = createEpisodes((episode) =>
    episode.kind === 'begins'
      ? log.fault('database_connection_lost', episode.error)
      : log.info('database_connected_again', { lost: episode.failures }),
  );
  pool.on('error', losses.failed);
  pool.on('connect', losses.succeeded);
  return pool;
}

/**
 * Every statement here finds its rows by key. A plan is made once for a connection, perhaps while a table is empty: it
 * must not be a scan, which the table's growth would turn into the cost of every batch.
 *
 * Over a socket of the machine itself the server ignores what is said of TCP.
 */
function settings(statementTimeoutMs: number): string {
  return [
    `statement_timeout=${statementTimeoutMs}`,
    `idle_in_transaction_session_timeout=${statementTimeoutMs}`,
    'timezone=UTC',
    'plan_cache_mode=force_generic_plan',
    'enable_seqscan=off',
    // Where there is no other way than a scan, its cost now seems worth compiling for.
    'jit=off',
    // A host that is gone would keep its locks for the two hours after which the server asks by default.
    'tcp_keepalives_idle=15',
    'tcp_keepalives_interval=5',
    'tcp_keepalives_count=3',
  ]
    .map((setting) => `-c ${setting}`)
    .join(' ');
}

/** Whether the database answers. */
export function isAlive(db: Queryable): Promise<boolean> {
  return db.query({ text: 'select 1' }).then(
    () => true,
    () => false,
  );
}

/**
 * Runs `work` in one transaction on one connection.
 *
 * @throws what `work` throws, after a rollback; a connection in doubt is destroyed, never handed back
 */
export async function inTransaction<T>(pool: Pool, work: (db: Queryable) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let doubt: Error | undefined;
  const onError = (error: Error): void => {
    doubt = error;
  };
  // A client that is checked out and idle reports its death here, or else to nobody, which ends the process.
  client.on('error', onError);
  try {
    await client.query('begin');
    const result = await work(client as Queryable);
    await client.query('commit');
    return result;
  } catch (error) {
    // The rollback of a dead connection never settles by itself; the query timeout bounds it.
    await client.query('rollback').catch((rollbackError: Error) => {
      doubt = rollbackError;
    });
    throw error;
  } finally {
    client.removeListener('error', onError);
    client.release(doubt);
  }
}

/** Like `inTransaction`, for reading alone: everything that `work` reads belongs to one instant. */
export function inSnapshot<T>(pool: Pool, work: (db: Queryable) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (db) => {
    await db.query({ text: 'set transaction isolation level repeatable read, read only', values: [] });
    return work(db);
  });
}

/** Beside outages. */
const TRANSIENT_CODES = new Set([
  '40001', // serialization failure
  '40P01', // deadlock
  '55P03', // lock not available
  '57014', // statement cancelled (timeout)
  '25006', // read-only: a failover under way
  '25P03', // idle-in-transaction timeout
  '53100', // disk full
  '53200', // out of memory
]);

/** Whether the same statement may succeed later: the database's state is at fault, not the statement. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return isOutage(error) || TRANSIENT_CODES.has(String((error as { code?: unknown }).code));
}
