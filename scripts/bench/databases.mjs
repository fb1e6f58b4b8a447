// A database of its own for every run, on the server that was given.

import { randomBytes } from 'node:crypto';
import { remember } from './leftovers.mjs';
import { importFrom } from './modules.mjs';

const { default: pg } = await importFrom('pg');
const serverUrl = process.env.DUEPOST_DATABASE_URL;

/** Runs `work` with a connection to a database. */
export async function withClient(url, work) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function urlOf(name) {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Makes a database; `template` is the name of one to copy. */
export async function openDatabase({ template } = {}) {
  const name = `bench_${randomBytes(6).toString('hex')}`;
  const from = template === undefined ? '' : ` template ${template}`;
  await withClient(serverUrl, (client) => client.query(`create database ${name}${from}`));
  const drop = () =>
    withClient(serverUrl, (client) => client.query(`drop database if exists ${name} with (force)`));
  const forget = remember(drop);
  return {
    name,
    url: urlOf(name),
    async close() {
      await drop();
      forget();
      // So that no run pays for the pages that the one before left to be written.
      await withClient(serverUrl, (client) => client.query('checkpoint')).catch(() => {});
    },
  };
}

/** Where the server listens. */
export const findDatabasePort = () => Number(new URL(serverUrl).port) || 5432;

/** What the server says of itself. */
export function describeServer() {
  return withClient(serverUrl, async (client) => {
    const { rows } = await client.query(
      `select current_setting('server_version') as version, current_setting('fsync') as fsync,
              current_setting('synchronous_commit') as synchronous_commit,
              current_setting('shared_buffers') as shared_buffers`,
    );
    return rows[0];
  });
}
