import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A database on the server of the test run. */
export interface ServerDatabase {
  readonly name: string;
  readonly url: string;
  drop(): Promise<void>;
}

/** Makes a database; a copy of `template`, or an empty one where that is undefined. */
export async function createDatabase(template?: string): Promise<ServerDatabase> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  const from = template === undefined ? '' : `template ${template}`;
  await onServer((client) => client.query(`create database ${name} ${from}`));
  const url = new URL(databaseServerUrl());
  url.pathname = `/${name}`;
  return {
    name,
    url: url.href,
    drop: async () => {
      await onServer((client) => client.query(`drop database ${name} with (force)`));
    },
  };
}

export function databaseServerUrl(): string {
  return process.env['DUEPOST_DATABASE_URL'] ?? '';
}

async function onServer(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: databaseServerUrl() });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
