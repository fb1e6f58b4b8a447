// One drain: everything is there already, one process delivers it.

import { startChild } from './child.mjs';
import { findDatabasePort, openDatabase } from './databases.mjs';
import { findListener, processorMs } from './processor.mjs';
import { openProduct } from './product.mjs';

let servers;

/** The processes of the two servers, where they run on this machine. */
function findServers() {
  servers ??= {
    database: findListener(findDatabasePort()),
    broker: findListener(Number(new URL(process.env.DUEPOST_AMQP_URL).port) || 5672),
  };
  return servers;
}

/** Processor time of everybody, to be subtracted. */
export function readProcessors(nodePid) {
  return {
    node: processorMs(nodePid),
    database: processorMs(findServers().database),
    broker: processorMs(findServers().broker),
  };
}

/** Microseconds of each per delivery. */
export function perDelivery(before, after, count) {
  const each = (name) =>
    before[name] === undefined || after[name] === undefined
      ? undefined
      : ((after[name] - before[name]) * 1_000) / count;
  return { node: each('node'), database: each('database'), broker: each('broker') };
}

async function toResult(sink, { count, before, after, endedAt }) {
  const report = await sink.ask('report');
  if (report.effects !== count || report.calls !== count) {
    throw new Error(`${count} deliveries made ${report.calls} calls and ${report.effects} effects`);
  }
  const seconds = (endedAt - report.firstAt) / 1_000;
  return { perSecond: count / seconds, seconds, cpuMicroseconds: perDelivery(before, after, count) };
}

export const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;

/** duepost: rows and wake-ups are there, then a worker starts. From the first call until every row has ended. */
export async function drainProduct(sink, { count, client, folder, execArgv, sinkUrl, maxInFlight, env }) {
  const product = await openProduct({ url: sinkUrl, client, folder, maxInFlight, env });
  try {
    await product.addEndpoint('sink');
    const fillStartMs = monotonicMs();
    await product.fill(count);
    const fillMs = monotonicMs() - fillStartMs;
    await sink.ask('reset', { goal: count });
    const first = sink.event('first');
    const reached = sink.event('reached');
    const role = product.startRoles('worker', { execArgv });
    await first;
    const before = readProcessors(role.pid);
    await reached;
    await product.untilEnded();
    const endedAt = monotonicMs();
    const after = readProcessors(role.pid);
    const result = await toResult(sink, { count, before, after, endedAt });
    await product.check(count);
    await role.stop();
    const left = await product.parts.publisher.countReady(`${product.prefix}.v1.deliveries`);
    if (left !== 0) throw new Error(`${left} wake-ups were not acknowledged`);
    return { ...result, filledPerSecond: (count * 1_000) / fillMs };
  } finally {
    await product.close();
  }
}

/** A peer, or the bare client: a process that is filled, started and watched in the same way. */
export async function drainPeer(sink, { count, file, client, sinkUrl, options = {}, hasDatabase = true }) {
  const database = hasDatabase ? await openDatabase() : undefined;
  const child = startChild(`./peers/${file}`);
  try {
    await child.ask('prepare', {
      client,
      url: new URL('/ok', sinkUrl).href,
      databaseUrl: database?.url,
      ...options,
    });
    if (file !== 'http-only.mjs') await child.ask('fill', { count });
    await sink.ask('reset', { goal: count });
    const first = sink.event('first');
    const reached = sink.event('reached');
    const started = child.ask('start', { count });
    await first;
    const before = readProcessors(child.pid);
    await reached;
    await started;
    const { attempts } = await child.ask('check');
    const endedAt = monotonicMs();
    const after = readProcessors(child.pid);
    if (options.attemptRows && attempts !== count)
      throw new Error(`${count} jobs made ${attempts} attempt rows`);
    return await toResult(sink, { count, before, after, endedAt });
  } finally {
    await child.stop();
    await database?.close();
  }
}
