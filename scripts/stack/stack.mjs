// The two servers together: started, adopted, shared, stopped.

import { mkdirSync, rmSync } from 'node:fs';
import { findGiven, takeBack } from './given.mjs';
import { hold, letGo, listHolders, withLock } from './lock.mjs';
import { build, installModules } from './npm.mjs';
import { elsewhere, local, logs } from './place.mjs';
import { isPostgresRunning, setDurability, startPostgres, stopPostgres } from './postgres.mjs';
import { isRabbitmqRunning, startRabbitmq, stopRabbitmq } from './rabbitmq.mjs';
import { Failure, Interrupted, say } from './report.mjs';
import { developmentSealingKeyFile } from './sealing-key.mjs';
import { changeState, readState } from './state.mjs';
import { applyTopology } from './topology.mjs';

const servers = {
  postgres: {
    isRunning: isPostgresRunning,
    start: startPostgres,
    stop: stopPostgres,
  },
  rabbitmq: {
    isRunning: isRabbitmqRunning,
    start: startRabbitmq,
    stop: stopRabbitmq,
  },
};

/** The lock, with one clear line where .local cannot be written. */
async function inTurn(name, signal, body) {
  try {
    mkdirSync(logs, { recursive: true });
    return await withLock(name, signal, body);
  } catch (error) {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error;
    throw new Failure(`no right to write ${error.path ?? local}: it belongs to another user`, {
      advice: [
        `stop what runs there as that user (npm run services -- reset), or: sudo rm -rf ${local} ${elsewhere}`,
      ],
    });
  }
}

/** Gives whether it had to be started. */
async function ensureServer(name, { fsync, others, signal }) {
  const former = await takeBack(name);
  const given = findGiven(name);
  if (given !== undefined) {
    say(name, `using ${given} as it is; unset it for a private server`);
    return false;
  }
  const { isRunning, start, stop } = servers[name];
  const recorded = readState()[name];
  const record = (server) => changeState({ [name]: server });
  if (await isRunning(recorded)) {
    say(name, `running already on 127.0.0.1:${recorded.port}`);
    // Others may be using it: durability is only ever added for them, and taken away when nobody is there.
    if (name === 'postgres' && (fsync || others.length === 0)) setDurability(recorded, { fsync, record });
    return false;
  }
  if (recorded !== undefined) await stop(recorded);
  await start({ fsync, record, signal });
  if (former !== undefined && readState()[name].url !== former) {
    say(name, 'not where this shell looks for it: eval "$(npm run -s services -- up)"');
  }
  return true;
}

async function stopServers() {
  const state = readState();
  for (const name of ['rabbitmq', 'postgres']) {
    if (state[name] === undefined) continue;
    await servers[name].stop(state[name]);
    changeState({ [name]: undefined });
    say(name, 'stopped');
  }
  changeState({ keep: false });
}

async function stopUnlessUsed() {
  if (readState().keep || listHolders().length > 0) return;
  await stopServers();
}

/**
 * Makes everything ready at the same time: PostgreSQL, RabbitMQ and, with `prepare`, node_modules and dist.
 * The caller is a holder afterwards, until `leaveStack`.
 */
export async function joinStack({ name, fsync = false, prepare = false, signal }) {
  await inTurn(name, signal, async () => {
    const others = listHolders();
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const parts = [
      ensureServer('postgres', { fsync, others, signal: either }),
      ensureServer('rabbitmq', { fsync, others, signal: either }),
      prepare ? installModules(either).then(() => build(either)) : undefined,
    ];
    // The first failure ends the other parts, and is the one that is told.
    await Promise.all(parts).catch((error) => failed.abort(error));
    await Promise.allSettled(parts);
    if (either.aborted) {
      await stopUnlessUsed();
      throw signal.aborted ? new Interrupted() : failed.signal.reason;
    }
    const [, isNewBroker] = await Promise.all(parts);
    if (isNewBroker && others.some((holder) => holder.name === 'npm start')) {
      await applyTopology({ env: createEnvironment('development'), signal });
    }
    hold(name);
  });
}

/** The last holder stops the servers, unless they were asked to stay. */
export async function leaveStack({ name, keep = false }) {
  await inTurn(name, undefined, async () => {
    letGo();
    if (keep) changeState({ keep: true });
    await stopUnlessUsed();
  });
}

/** What a command needs to find the servers. */
export function createEnvironment(environment) {
  const { postgres, rabbitmq } = readState();
  const env = { ...process.env };
  if ((env.DUEPOST_ENV ?? '') === '') env.DUEPOST_ENV = environment;
  if (findGiven('postgres') === undefined) env.DUEPOST_DATABASE_URL = postgres.url;
  if (findGiven('rabbitmq') === undefined) {
    env.DUEPOST_AMQP_URL = rabbitmq.url;
    env.DUEPOST_MANAGEMENT_URL = rabbitmq.managementUrl;
  }
  const isSealing = env.DUEPOST_SEALING_KEY !== undefined || env.DUEPOST_SEALING_KEY_FILE !== undefined;
  if (env.DUEPOST_ENV === 'development' && !isSealing) {
    env.DUEPOST_SEALING_KEY_FILE = developmentSealingKeyFile();
  }
  return env;
}

/** Gives up the wish to keep the servers running; who uses them still keeps them. */
export async function closeStack(name) {
  await inTurn(name, undefined, async () => {
    changeState({ keep: false });
    const holders = listHolders();
    for (const holder of holders)
      say('stack', `in use by ${holder.name} (pid ${holder.pid}): stops when that ends`);
    await stopUnlessUsed();
  });
}

/** Stops the servers whoever uses them, and deletes everything they kept. */
export async function resetStack(name) {
  await inTurn(name, undefined, async () => {
    listHolders();
    await stopServers();
    rmSync(elsewhere, { recursive: true, force: true });
    rmSync(local, { recursive: true, force: true });
  });
}

/** `{ name, server, running }` of both. */
export function checkServers() {
  const state = readState();
  return Promise.all(
    Object.entries(servers).map(async ([name, { isRunning }]) => {
      return { name, server: state[name], running: await isRunning(state[name]) };
    }),
  );
}
