// A private PostgreSQL: throw-away data, its own port, 127.0.0.1 only.

import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as docker from './docker.mjs';
import { elsewhere, local, logs, othersCanEnter } from './place.mjs';
import { accepts, findFreePorts } from './ports.mjs';
import { findSystemPostgres, installNpmPostgres, isNpmPostgresPossible } from './postgres-binaries.mjs';
import { commandLine, identify, isAlive, run, signalProcess, spawnServer, waitUntil } from './process.mjs';
import { Failure, lastLines, resetAdvice, say } from './report.mjs';

const log = join(logs, 'postgres.log');
const initLog = join(logs, 'initdb.log');
const readyWithinMs = 60_000;

/** PostgreSQL refuses to run as root: `{ uid, gid }` of somebody with a name, undefined for an ordinary user. */
function findServerUser() {
  if (process.getuid() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const entry = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  if (entry === undefined)
    throw new Failure('PostgreSQL cannot run as root, and there is no user postgres or nobody');
  return { uid: Number(entry[2]), gid: Number(entry[3]) };
}

/** The folder of data and npm binaries: the server's user must be able to enter it. */
function prepareHome(user) {
  const home = user === undefined || othersCanEnter() ? local : elsewhere;
  mkdirSync(home, { recursive: true, mode: 0o755 });
  // /var/tmp is everybody's: a folder that somebody else put there is not ours to use.
  if (home === elsewhere && lstatSync(home).uid !== process.getuid()) {
    throw new Failure(`${home} belongs to another user: remove it`);
  }
  if (user !== undefined) {
    // What npm unpacks there must be readable whatever the caller's umask is.
    process.umask(0o022);
    chmodSync(home, 0o755);
  }
  return home;
}

async function findPostgres(home, signal) {
  const system = findSystemPostgres();
  if (system !== undefined) return system;
  if (isNpmPostgresPossible()) return installNpmPostgres(home, signal);
  if (await docker.isAvailable()) return undefined;
  throw new Failure('PostgreSQL 15 or newer was not found. Any one of:', {
    advice: [
      'sudo apt-get install -y postgresql · apk add postgresql17 · brew install postgresql@17',
      'start Docker',
      'export DUEPOST_DATABASE_URL=postgres://user:password@host:5432/database',
    ],
  });
}

function readMajorOfData(data) {
  try {
    return Number(readFileSync(join(data, 'PG_VERSION'), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Makes the data directory unless a complete one of the same version and owner is there. */
async function prepareData(data, { bin, major }, { user, signal }) {
  const marker = join(data, 'duepost-complete');
  const uid = user?.uid ?? process.getuid();
  if (existsSync(marker) && readMajorOfData(data) === major && statSync(data).uid === uid) return;
  if (existsSync(marker)) say('postgres', 'the data of another version or user is thrown away');
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (user !== undefined) chownSync(data, user.uid, user.gid);
  const options = { ...user, cwd: data, log: initLog, signal };
  const settings = ['--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  await run(join(bin, 'initdb'), ['-D', data, '-U', 'duepost', ...settings], { ...options, what: 'initdb' });
  appendFileSync(join(data, 'postgresql.conf'), "\ninclude_if_exists 'duepost.conf'\n");
  // There is no psql in npm's binaries; single-user mode needs none.
  const input = 'create database duepost\n';
  const args = ['--single', '-D', data, 'postgres'];
  await run(join(bin, 'postgres'), args, { ...options, input, what: 'create database' });
  writeFileSync(marker, '');
}

/** A file of its own because both settings can be changed while the server runs. */
function writeDurability(data, fsync) {
  const value = fsync ? 'on' : 'off';
  writeFileSync(join(data, 'duepost.conf'), `fsync = ${value}\nfull_page_writes = ${value}\n`);
}

/** After a kill -9 the old pid may be a zombie or somebody else: PostgreSQL would refuse to start. */
function removeStalePidFile(data) {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  if (identify(pid) !== undefined && commandLine(pid).includes(data)) {
    // Ours, but not in our books: its start was killed before it was written down.
    signalProcess(pid, 'SIGQUIT');
    return;
  }
  rmSync(file, { force: true });
}

/**
 * Starts PostgreSQL; `record` is told as soon as there is something to stop.
 * Synchronous commit stays on: with fsync off it costs nothing, and a killed server keeps what it confirmed.
 */
export async function startPostgres({ fsync, record, signal }) {
  const user = findServerUser();
  const home = prepareHome(user);
  const postgres = await findPostgres(home, signal);
  if (postgres === undefined) return startInDocker(record);
  const data = join(home, 'postgres');
  await prepareData(data, postgres, { user, signal });
  removeStalePidFile(data);
  await waitUntil(() => !existsSync(join(data, 'postmaster.pid')), { withinMs: 10_000, signal });
  writeDurability(data, fsync);
  const [port] = await findFreePorts([0]);
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'timezone=UTC',
    'max_connections=200',
  ];
  const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const server = await spawnServer(join(postgres.bin, 'postgres'), args, { ...user, cwd: data, log });
  const { pid, identity } = server;
  record({
    kind: 'process',
    pid,
    identity,
    port,
    data,
    fsync,
    url: `postgres://duepost@127.0.0.1:${port}/duepost`,
  });
  // The socket opens before recovery has ended; the last line of the pid file says when sessions are taken.
  const isReady = async () => server.exit !== undefined || (isMarkedReady(data) && (await accepts(port)));
  const inTime = await waitUntil(isReady, { withinMs: readyWithinMs, signal });
  if (server.exit !== undefined || !inTime) {
    const how =
      server.exit === undefined ? `is not ready after ${readyWithinMs / 1000} s` : `ended (${server.exit})`;
    throw new Failure(`PostgreSQL on port ${port} ${how}`, { advice: resetAdvice, log });
  }
  say('postgres', `ready on 127.0.0.1:${port} (${postgres.major}, ${postgres.bin})`);
}

function isMarkedReady(data) {
  return lastLines(join(data, 'postmaster.pid'), 1)[0]?.trim() === 'ready';
}

async function startInDocker(record) {
  const [port] = await findFreePorts([0]);
  const url = `postgres://duepost:duepost@127.0.0.1:${port}/duepost`;
  record({ kind: 'docker', port, fsync: true, url });
  await docker.up('postgres', { DUEPOST_POSTGRES_PORT: port });
  say('postgres', `ready on 127.0.0.1:${port} (docker)`);
}

export async function isPostgresRunning(server) {
  if (server === undefined) return false;
  return (server.kind === 'docker' || isAlive(server)) && accepts(server.port);
}

/** Turns fsync on or off in the running server. */
export function setDurability(server, { fsync, record }) {
  if (server.kind === 'docker' || server.fsync === fsync) return;
  writeDurability(server.data, fsync);
  signalProcess(server.pid, 'SIGHUP');
  record({ ...server, fsync });
}

/** A fast shutdown. Waits for the pid file, not the pid: the child of a killed script may stay a zombie. */
export async function stopPostgres(server) {
  if (server.kind === 'docker') return docker.down();
  if (!isAlive(server)) return;
  signalProcess(server.pid, 'SIGINT');
  const isGone = () => !existsSync(join(server.data, 'postmaster.pid')) || !isAlive(server);
  if (await waitUntil(isGone, { withinMs: 5000 })) return;
  signalProcess(server.pid, 'SIGQUIT');
  await waitUntil(isGone, { withinMs: 5000 });
}
