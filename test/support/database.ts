import { inject } from 'vitest';
import { openPool, type Pool } from '../../src/store/pool.ts';
import { createDatabase, databaseServerUrl } from './database-server.ts';
import { recordLog } from './recorded-log.ts';

/** A migrated database of its own on the server of the test run. */
export interface TestDatabase {
  readonly url: string;
  readonly pool: Pool;
  /** Ends the pool and drops the database. */
  close(): Promise<void>;
}

const OPTIONS = { poolSize: 8, statementTimeoutMs: 10_000 };

/** Makes a database of its own; migrated, unless `migrated` is false. */
export async function openTestDatabase({ migrated = true } = {}): Promise<TestDatabase> {
  const database = await createDatabase(migrated ? inject('migratedDatabase') : undefined);
  const pool = openPool({ ...OPTIONS, url: database.url }, recordLog().log);
  return {
    url: database.url,
    pool,
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}

/** The same database, reached through a proxy. */
export function databaseThroughPort(url: string, port: number): string {
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String(port);
  return through.href;
}

/** Where the database server listens, for a proxy in front of it. */
export function databaseTarget(): { targetPort: number; targetHost: string } {
  const url = new URL(databaseServerUrl());
  return { targetPort: Number(url.port) || 5432, targetHost: url.hostname };
}
