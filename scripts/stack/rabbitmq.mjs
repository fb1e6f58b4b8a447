// A private RabbitMQ: its own node name, cookie, ports and port mapper, 127.0.0.1 only.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as docker from './docker.mjs';
import { local, logs, stackName } from './place.mjs';
import { accepts, findFreePorts } from './ports.mjs';
import { findInGroup, isAlive, signalProcess, spawnServer, waitUntil } from './process.mjs';
import { canInstall, findEpmd, findRabbitmq, installRabbitmq } from './rabbitmq-binaries.mjs';
import { Failure, resetAdvice, say } from './report.mjs';

const home = join(local, 'rabbitmq');
const log = join(logs, 'rabbitmq.log');
const readyWithinMs = 60_000;

async function obtainRabbitmq(signal) {
  const found = findRabbitmq();
  if (found !== undefined) return found;
  if (canInstall()) {
    await installRabbitmq(signal);
    return findRabbitmq();
  }
  if (await docker.isAvailable()) return undefined;
  throw new Failure('RabbitMQ was not found. Any one of:', {
    advice: [
      'sudo apt-get install -y rabbitmq-server   (it also starts a broker of its own: sudo systemctl disable --now rabbitmq-server)',
      'brew install rabbitmq',
      'start Docker',
      'export DUEPOST_AMQP_URL=amqp://user:password@host:5672',
    ],
  });
}

/**
 * The whole environment of the node and of `rabbitmqctl`: nothing inherited but PATH, and every file that would
 * be read from /etc/rabbitmq replaced, since that belongs to the machine's own broker.
 */
function createEnvironment({ epmd, distribution }) {
  const system = [
    '/usr/local/sbin',
    '/usr/local/bin',
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin',
    '/opt/homebrew/bin',
  ];
  return {
    PATH: [process.env.PATH, ...system].filter(Boolean).join(':'),
    LANG: 'C.UTF-8',
    HOME: join(home, 'home'),
    RABBITMQ_NODENAME: `${stackName}@localhost`,
    RABBITMQ_MNESIA_BASE: join(home, 'mnesia'),
    RABBITMQ_LOG_BASE: join(home, 'log'),
    RABBITMQ_PID_FILE: join(home, 'pid'),
    RABBITMQ_CONFIG_FILE: join(home, 'rabbitmq.conf'),
    RABBITMQ_CONFIG_FILES: join(home, 'conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(home, 'advanced.config'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(home, 'enabled_plugins'),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    ERL_EPMD_PORT: String(epmd),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_CRASH_DUMP: '/dev/null',
  };
}

/**
 * An empty node at every start. A node killed right after a quorum queue was declared can come back with that queue
 * but without a leader, and then never confirms; starting empty takes no longer.
 */
function prepareHome({ amqp, management, keepsData }) {
  for (const name of keepsData ? [] : ['mnesia', 'log', 'conf.d']) {
    rmSync(join(home, name), { recursive: true, force: true });
  }
  for (const name of ['home', 'mnesia', 'log', 'conf.d']) mkdirSync(join(home, name), { recursive: true });
  const settings = [
    `listeners.tcp.1 = 127.0.0.1:${amqp}`,
    'management.tcp.ip = 127.0.0.1',
    `management.tcp.port = ${management}`,
  ];
  writeFileSync(join(home, 'rabbitmq.conf'), `${settings.join('\n')}\n`);
  writeFileSync(join(home, 'advanced.config'), '[].\n');
  writeFileSync(join(home, 'enabled_plugins'), '[rabbitmq_management].\n');
}

/**
 * Starts RabbitMQ; `record` is told as soon as there is something to stop.
 *
 * @param keepsData  goes on with what the node before it had stored
 */
export async function startRabbitmq({ record, signal, keepsData = false }) {
  const bin = await obtainRabbitmq(signal);
  if (bin === undefined) return startInDocker(record);
  const [amqp, management, epmdPort, distribution] = await findFreePorts([1, 2, 3, 4]);
  prepareHome({ amqp, management, keepsData });
  const env = createEnvironment({ epmd: epmdPort, distribution });
  let server = {
    kind: 'process',
    bin,
    port: amqp,
    epmdPort,
    url: `amqp://guest:guest@127.0.0.1:${amqp}`,
    managementUrl: `http://guest:guest@127.0.0.1:${management}`,
  };
  // The node would start a port mapper that leaves its process group and outlives it: ours can be stopped.
  const epmdArgs = ['-port', String(epmdPort), '-address', '127.0.0.1'];
  const epmd = await spawnServer(findEpmd(), epmdArgs, { cwd: home, env, log: join(logs, 'epmd.log') });
  server = { ...server, epmd: { pid: epmd.pid, identity: epmd.identity } };
  record(server);
  await waitUntil(() => accepts(epmdPort), { withinMs: 5000, signal });
  const broker = await spawnServer(join(bin, 'rabbitmq-server'), [], { cwd: home, env, log });
  server = { ...server, pid: broker.pid, identity: broker.identity };
  record(server);
  // The AMQP listener opens last. The start script ends with 0 when the node failed, so any end is one.
  const isReady = async () => broker.exit !== undefined || (await accepts(amqp));
  const inTime = await waitUntil(isReady, { withinMs: readyWithinMs, everyMs: 50, signal });
  if (broker.exit !== undefined || !inTime) {
    const how =
      broker.exit === undefined ? `is not ready after ${readyWithinMs / 1000} s` : `ended (${broker.exit})`;
    throw new Failure(`RabbitMQ on port ${amqp} ${how}`, { advice: resetAdvice, log });
  }
  await waitUntil(() => accepts(management), { withinMs: 5000, signal });
  record({ ...server, beam: findInGroup(broker.pid, 'beam.smp') });
  say('rabbitmq', `ready on 127.0.0.1:${amqp}, management on ${management} (${bin})`);
}

async function startInDocker(record) {
  const [amqp, management] = await findFreePorts([1, 2]);
  const url = `amqp://duepost:duepost@127.0.0.1:${amqp}`;
  record({
    kind: 'docker',
    port: amqp,
    url,
    managementUrl: `http://duepost:duepost@127.0.0.1:${management}`,
  });
  await docker.up('rabbitmq', { DUEPOST_AMQP_PORT: amqp, DUEPOST_MANAGEMENT_PORT: management });
  say('rabbitmq', `ready on 127.0.0.1:${amqp}, management on ${management} (docker)`);
}

export async function isRabbitmqRunning(server) {
  if (server === undefined) return false;
  return (server.kind === 'docker' || (isAlive(server) && isAlive(server.epmd))) && accepts(server.port);
}

/**
 * Kills the whole process group, then the port mapper. A graceful stop takes six seconds, and nothing is kept
 * of this node anyway.
 */
export async function stopRabbitmq(server) {
  if (server.kind === 'docker') return docker.down();
  // The group lives as long as one of its members: with the shell killed, the node's own pid vouches for it.
  const isOurs = () => isAlive(server) || isAlive(server.beam);
  if (isOurs()) signalProcess(-server.pid, 'SIGKILL');
  await waitUntil(() => !isOurs(), { withinMs: 5000 });
  if (isAlive(server.epmd)) signalProcess(server.epmd.pid, 'SIGKILL');
  await waitUntil(() => !isAlive(server.epmd), { withinMs: 5000 });
}

/** The command line of `rabbitmqctl` for this node, as `[file, args, environment]`. */
export function ctlCommand(server, args) {
  if (server.kind === 'docker') return [...docker.ctlCommand(args), process.env];
  const env = createEnvironment({ epmd: server.epmdPort, distribution: 0 });
  // Its own short-lived node may use any port.
  delete env.RABBITMQ_DIST_PORT;
  return [join(server.bin, 'rabbitmqctl'), args, env];
}
