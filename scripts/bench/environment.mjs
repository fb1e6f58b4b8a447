// On what it was measured.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { describeServer } from './databases.mjs';
import { importFrom, root } from './modules.mjs';

function readVersion(folder, name) {
  try {
    return JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}

function readCommit() {
  try {
    const git = (...args) =>
      execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return (
      git('rev-parse', '--short', 'HEAD') +
      (git('status', '--porcelain', '--', 'src', 'migrations') === '' ? '' : ' + changes')
    );
  } catch {
    return 'unknown';
  }
}

async function readBroker() {
  const amqp = await importFrom('amqplib');
  const connection = await (amqp.connect ?? amqp.default.connect)(process.env.DUEPOST_AMQP_URL);
  const { product, version } = connection.connection.serverProperties;
  await connection.close();
  return `${product} ${version}`;
}

export async function describeEnvironment() {
  const database = await describeServer();
  const here = import.meta.dirname;
  return {
    at: new Date().toISOString(),
    commit: readCommit(),
    processors: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    memory: `${(totalmem() / 2 ** 30).toFixed(1)} GB`,
    system: `${process.platform} ${release()}`,
    node: process.version,
    database: `PostgreSQL ${database.version}, fsync ${database.fsync}, synchronous_commit ${database.synchronous_commit}, shared_buffers ${database.shared_buffers}`,
    broker: await readBroker(),
    packages: [
      ...['undici', 'node-fetch', 'pg', 'amqplib'].map((name) => `${name} ${readVersion(root, name)}`),
      ...['graphile-worker', 'pg-boss', 'bullmq'].map((name) => `${name} ${readVersion(here, name)}`),
    ].join(', '),
    load: loadavg()
      .map((value) => value.toFixed(2))
      .join(' '),
  };
}
