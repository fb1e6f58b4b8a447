import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/store/migrate.ts';
import { createDatabase } from './database-server.ts';
import { recordLog } from './recorded-log.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The name of a migrated database that nobody is connected to: copying it is quicker than migrating another. */
    readonly migratedDatabase: string;
  }
}

const needed = ['DUEPOST_DATABASE_URL', 'DUEPOST_AMQP_URL'];

/** Tests run against real servers; without their addresses nothing else can be said. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  refuseWithoutServers();
  const database = await createDatabase();
  await migrate({ url: database.url, poolSize: 2, statementTimeoutMs: 60_000 }, recordLog().log);
  project.provide('migratedDatabase', database.name);
  return () => database.drop();
}

function refuseWithoutServers(): void {
  const missing = needed.filter((name) => (process.env[name] ?? '') === '');
  if (missing.length === 0) return;
  const refusal = new Error(`${missing.join(' and ')} not set: run npm test, which starts the servers`);
  // Where it was thrown explains nothing: vitest is to print the line alone.
  refusal.stack = '';
  throw refusal;
}
