import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { migrate } from '../../src/store/migrate.ts';
import { openPool, type Pool } from '../../src/store/pool.ts';
import { recordLog } from './recorded-log.ts';

/** A migrated database of its own on the server of the test run. */
export interface TestDatabase {
  readonly url: string;
  readonly pool: Pool;
  /** Ends the pool and drops the database. */
  close(): Promise<void>;
}

const STATEMENT_TIMEOUT_MS = 10_000;

/** Makes a database of its own; migrated, unless `migrated` is false. */
export async function openTestDatabase({ migrated = true } = {}): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await onServer((client) => client.query(`create database ${name}`));
  const url = new URL(serverUrl());
  url.pathname = `/${name}`;
  const config = { url: url.href, poolSize: 8, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  if (migrated) await migrate(config, recordLog().log);
  const pool = openPool(config, recordLog().log);
  return {
    url: url.href,
    pool,
    async close() {
      await pool.end();
      await onServer((client) => client.query(`drop database ${name} with (force)`));
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
  const url = new URL(serverUrl());
  return { targetPort: Number(url.port) || 5432, targetHost: url.hostname };
}

function serverUrl(): string {
  return process.env['DUEPOST_DATABASE_URL'] ?? '';
}

async function onServer(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl() });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
