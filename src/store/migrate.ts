import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { packageRoot } from '../runtime/build-info.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import type { Queryable } from './pool.ts';

const DIRECTORY = join(packageRoot, 'migrations');
const TABLE = 'migration';

/** What the database has, and what this version of duepost brings. */
export interface MigrationStatus {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** In the database, but unknown here: a newer version was at work. */
  readonly unknown: readonly string[];
}

/** Names of the migrations that this version brings, in order. */
function listMigrationFiles(): string[] {
  return readdirSync(DIRECTORY)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/**
 * Applies what is pending, all in one transaction; several that start at once wait for the one that applies.
 *
 * @returns the names of what was applied
 */
export async function migrate(config: Config['database'], log: Log): Promise<string[]> {
  const client = new pg.Client({ connectionString: config.url, application_name: 'duepost migrate' });
  client.on('error', (error) => log.fault('database_connection_lost', error));
  await client.connect();
  try {
    const status = await findMigrationStatus(client as Queryable);
    refuseNewer(status);
    // Everybody asks for the status; what applies takes longer to load than all of that.
    const { runner } = await import('node-pg-migrate');
    const applied = await runner({
      dbClient: client,
      dir: DIRECTORY,
      migrationsTable: TABLE,
      direction: 'up',
      singleTransaction: true,
      checkOrder: true,
      advisoryLockMode: 'wait',
      logger: {
        info: () => {},
        warn: (text) => log.warn('migration', { text }),
        error: (text) => log.error('migration', { text }),
      },
    });
    return applied.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}

/** What is applied, pending and unknown. */
export async function findMigrationStatus(db: Queryable): Promise<MigrationStatus> {
  const files = listMigrationFiles();
  const table = await db.query<{ there: boolean }>({
    text: `select to_regclass('${TABLE}') is not null as there`,
    values: [],
  });
  const applied = table.rows[0]?.there
    ? (
        await db.query<{ name: string }>({ text: `select name from ${TABLE} order by name`, values: [] })
      ).rows.map((row) => row.name)
    : [];
  return {
    applied,
    pending: files.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !files.includes(name)),
  };
}

/** Throws unless the database is exactly at the version this program was built for. */
export async function requireMigrated(db: Queryable): Promise<void> {
  const status = await findMigrationStatus(db);
  refuseNewer(status);
  if (status.pending.length > 0) {
    throw new Error(
      `${status.pending.length} migrations are pending (${status.pending.join(', ')}): run duepost migrate`,
    );
  }
}

function refuseNewer(status: MigrationStatus): void {
  if (status.unknown.length === 0) return;
  throw new Error(
    `the database was migrated by a newer version of duepost (${status.unknown.join(', ')}): install that version or newer`,
  );
}

/** Makes the partitions of the months ahead; harmless when they exist. */
export async function ensurePartitions(db: Queryable): Promise<number> {
  const result = await db.query<{ made: number }>({
    name: 'ensure_partitions',
    text: 'select ensure_partitions(3) as made',
    values: [],
  });
  return result.rows[0]?.made ?? 0;
}
