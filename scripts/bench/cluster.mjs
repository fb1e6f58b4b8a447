// node scripts/bench/cluster.mjs: one broker node against three, on loopback: wake-ups published with confirms and
// consumed, and what a killed node costs. Starts its own nodes from an installed RabbitMQ and stops them.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { accepts, findFreePorts } from '../stack/ports.mjs';
import { signalProcess, spawnServer, waitUntil } from '../stack/process.mjs';
import { findEpmd, findRabbitmq } from '../stack/rabbitmq-binaries.mjs';
import { format } from './bench.mjs';
import { importFrom, importProduct } from './modules.mjs';
import { processorMs } from './processor.mjs';
import { median } from './statistics.mjs';

const COUNT = Number(process.argv[2] ?? 20_000);
const ROUNDS = 3;
const run = promisify(execFile);
const say = (text) => process.stdout.write(`${text}\n`);
const quiet = {
  error: say,
  warn() {},
  info() {},
  debug() {},
  fault: (event, error) => say(`    ${event}: ${error?.message}`),
};
quiet.child = () => quiet;

const home = mkdtempSync(join(tmpdir(), 'duepost-cluster-'));
const bin = findRabbitmq();
const [epmdPort, ...ports] = await findFreePorts([0, 1, 2, 3, 4, 5, 6]);
const servers = [];

function environmentOf(name, amqp, distribution) {
  const folder = join(home, name);
  for (const part of ['mnesia', 'log', 'conf.d']) mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(
    join(folder, 'rabbitmq.conf'),
    `listeners.tcp.1 = 127.0.0.1:${amqp}\ncluster_partition_handling = pause_minority\n`,
  );
  writeFileSync(join(folder, 'advanced.config'), '[].\n');
  writeFileSync(join(folder, 'enabled_plugins'), '[].\n');
  return {
    PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
    LANG: 'C.UTF-8',
    // One cookie for all of them.
    HOME: home,
    RABBITMQ_NODENAME: `${name}@localhost`,
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_CONFIG_FILES: join(folder, 'conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'advanced.config'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_CRASH_DUMP: '/dev/null',
  };
}

async function startNode(name, amqp, distribution) {
  const env = environmentOf(name, amqp, distribution);
  const server = await spawnServer(join(bin, 'rabbitmq-server'), [], {
    cwd: home,
    env,
    log: join(home, `${name}.log`),
  });
  servers.push(server);
  if (
    !(await waitUntil(async () => server.exit !== undefined || (await accepts(amqp)), {
      withinMs: 90_000,
    })) ||
    server.exit !== undefined
  ) {
    throw new Error(`${name} did not start: ${join(home, `${name}.log`)}`);
  }
  const { RABBITMQ_DIST_PORT: _, ...ctlEnv } = env;
  return {
    name,
    pid: server.pid,
    url: `amqp://guest:guest@127.0.0.1:${amqp}`,
    ctl: (...args) => run(join(bin, 'rabbitmqctl'), ['-q', ...args], { env: ctlEnv }),
    kill: () => signalProcess(-server.pid, 'SIGKILL'),
  };
}

const configOf = (node, prefix) => ({
  url: node.url,
  prefix,
  heartbeatSeconds: 10,
  confirmTimeoutMs: 60_000,
  maxUnconfirmed: 500,
});
const wakeUpOf = (number) => ({ deliveryId: `dlv_${String(number).padStart(26, '0')}`, attempt: 1 });

/** Publishes wake-ups that are due now, with confirms; then consumes them. */
async function measure(node, nodes, prefix) {
  const [{ applyTopology }, { connectPublisher }, { startConsumer }] = await Promise.all(
    ['broker/topology-apply.js', 'broker/publisher.js', 'broker/consumer.js'].map((path) =>
      importProduct(path),
    ),
  );
  const config = configOf(node, prefix);
  await applyTopology(config, quiet);
  await pause(2_000);
  const publisher = await connectPublisher(config, quiet);
  const cpu = () => nodes.reduce((sum, { pid }) => sum + (processorMs(pid) ?? 0), 0);
  const cpuBefore = cpu();
  const publishMs = await timed(() =>
    Promise.all(Array.from({ length: COUNT }, (_, n) => publisher.wake(wakeUpOf(n), 0))),
  );
  let taken = 0;
  let done;
  const all = new Promise((resolve) => {
    done = resolve;
  });
  let consumer;
  const consumeMs = await timed(async () => {
    consumer = await startConsumer({
      config,
      log: quiet,
      queue: `${prefix}.v1.deliveries`,
      prefetch: 500,
      handle: async () => {
        taken += 1;
        if (taken === COUNT) done();
      },
    });
    await all;
  });
  const cpuMicroseconds = ((cpu() - cpuBefore) * 1_000) / COUNT;
  await consumer.stop();
  await publisher.close();
  return { published: (COUNT * 1_000) / publishMs, consumed: (COUNT * 1_000) / consumeMs, cpuMicroseconds };
}

async function timed(work) {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** Kills the node that leads the queue while wake-ups are published through another; counts what was confirmed and what is there. */
async function killLeader(nodes, prefix) {
  const [first, second, third] = nodes;
  const queue = `${prefix}.v1.deliveries`;
  const { applyTopology } = await importProduct('broker/topology-apply.js');
  const { connectPublisher } = await importProduct('broker/publisher.js');
  await applyTopology(configOf(first, prefix), quiet);
  await pause(4_000);
  const publisher = await connectPublisher(configOf(second, prefix), quiet);
  const confirmed = new Set();
  let longestMs = 0;
  let failed = 0;
  const pending = [];
  const startMs = performance.now();
  for (let number = 0; number < COUNT; number += 1) {
    const sentMs = performance.now();
    pending.push(
      publisher.wake(wakeUpOf(number), 0).then(
        () => {
          confirmed.add(wakeUpOf(number).deliveryId);
          longestMs = Math.max(longestMs, performance.now() - sentMs);
        },
        () => {
          failed += 1;
        },
      ),
    );
    if (number === COUNT / 2) first.kill();
    if (number % 100 === 0) await pause(10);
  }
  await Promise.all(pending);
  const seconds = (performance.now() - startMs) / 1_000;
  await publisher.close();
  const found = await readAll(third, queue);
  const lost = [...confirmed].filter((id) => !found.has(id)).length;
  say(
    `  leader killed half-way: ${confirmed.size} confirmed in ${format(seconds)} s, ${failed} refused, the longest confirm took ${format(longestMs)} ms, ${lost} of the confirmed were lost`,
  );
}

async function readAll(node, queue) {
  const amqp = await importFrom('amqplib');
  const connection = await (amqp.connect ?? amqp.default.connect)(node.url);
  const channel = await connection.createChannel();
  const found = new Set();
  let lastAt = Date.now();
  await channel.consume(
    queue,
    (message) => {
      found.add(JSON.parse(message.content).delivery_id);
      lastAt = Date.now();
    },
    { noAck: true },
  );
  while (Date.now() - lastAt < 3_000) await pause(100);
  await connection.close();
  return found;
}

try {
  if (bin === undefined) throw new Error('RabbitMQ was not found');
  servers.push(
    await spawnServer(findEpmd(), ['-port', String(epmdPort), '-address', '127.0.0.1'], {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home },
      log: join(home, 'epmd.log'),
    }),
  );
  await waitUntil(() => accepts(epmdPort), { withinMs: 5_000 });
  const id = epmdPort;
  // The first makes the cookie that the others share.
  const single = await startNode(`single${id}`, ports[0], ports[1]);
  say(`  ${(await single.ctl('version')).stdout.trim() || 'RabbitMQ'}, ${COUNT} wake-ups a run`);
  const cluster = [];
  for (const [i, letter] of ['a', 'b'].entries())
    cluster.push(await startNode(`${letter}${id}`, ports[2 + 2 * i], ports[3 + 2 * i]));
  const [amqpPort, distributionPort] = await findFreePorts([8, 9]);
  cluster.push(await startNode(`c${id}`, amqpPort, distributionPort));
  for (const node of cluster.slice(1)) {
    await node.ctl('stop_app');
    await node.ctl('join_cluster', `${cluster[0].name}@localhost`);
    await node.ctl('start_app');
  }
  const runs = { 'one node': [], 'three nodes': [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [label, nodes] of [
      ['one node', [single]],
      ['three nodes', cluster],
    ]) {
      const result = await measure(nodes[0], nodes, `bench${round}${label.slice(0, 3)}`);
      runs[label].push(result);
      say(
        `  ${label.padEnd(12)} published ${format(result.published)}/s, consumed ${format(result.consumed)}/s, processor ${format(result.cpuMicroseconds)} µs a wake-up in all nodes`,
      );
    }
  }
  for (const name of ['published', 'consumed', 'cpuMicroseconds']) {
    const [one, three] = ['one node', 'three nodes'].map((label) => median(runs[label].map((r) => r[name])));
    say(`  ${name}: ${format(three / one)} × with three nodes`);
  }
  await killLeader(cluster, 'benchkill');
} finally {
  for (const server of servers.reverse()) signalProcess(-server.pid, 'SIGKILL');
  await pause(500);
  rmSync(home, { recursive: true, force: true });
}
process.exit();
