// How long from handing in until the receiver has it, at a rate that nobody finds hard.

import { setTimeout as pause } from 'node:timers/promises';
import { startChild } from '../child.mjs';
import { openDatabase } from '../databases.mjs';
import { monotonicMs } from '../drain.mjs';
import { openProduct } from '../product.mjs';
import { percentile } from '../statistics.mjs';

const PER_SECOND = 200;

/** Hands in at a steady rate; @returns when each was handed in, by number */
async function pace(count, hand) {
  const startMs = monotonicMs();
  const at = new Map();
  const pending = [];
  for (let number = 0; number < count; number += 1) {
    const waitMs = startMs + (number * 1_000) / PER_SECOND - monotonicMs();
    if (waitMs > 0) await pause(waitMs);
    at.set(`k${number}`, monotonicMs());
    pending.push(hand(number));
  }
  await Promise.all(pending);
  return at;
}

/** Milliseconds from an instant to the arrival at the sink; the key is what comes before a colon. */
export async function readDelays(sink, startOf) {
  const { times } = await sink.ask('times');
  return times.map(([key, arrivedMs]) => arrivedMs - startOf(key.split(':')[0]));
}

async function measureProduct(bench, count) {
  const product = await openProduct({ url: bench.sinkUrl });
  try {
    const endpoint = await product.addEndpoint('sink');
    const role = product.startRoles('worker');
    await warmUp(bench, () => product.fill(500, { first: 1_000_000 }), 500);
    const delays = await collect(bench, count, (number) =>
      product.request(number, { endpoint: endpoint.endpointId }),
    );
    await product.untilEnded();
    await role.stop();
    return delays;
  } finally {
    await product.close();
  }
}

async function measureGraphile(bench, count) {
  const database = await openDatabase();
  const child = startChild('./peers/graphile.mjs');
  try {
    // Its own tuning for latency: jobs are fetched at once, none are kept in a local queue.
    await child.ask('prepare', {
      client: 'undici',
      url: new URL('/ok', bench.sinkUrl).href,
      databaseUrl: database.url,
      localQueue: false,
    });
    const producer = startChild('./peers/graphile.mjs');
    await producer.ask('prepare', {
      client: 'undici',
      url: new URL('/ok', bench.sinkUrl).href,
      databaseUrl: database.url,
    });
    await child.ask('start');
    await warmUp(bench, () => producer.ask('fill', { count: 500, first: 1_000_000 }), 500);
    const delays = await collect(bench, count, (number) => producer.ask('add', { number }));
    await producer.stop();
    return delays;
  } finally {
    await child.stop();
    await database.close();
  }
}

async function warmUp(bench, fill, count) {
  await bench.sink.ask('reset', { goal: count });
  const reached = bench.sink.event('reached');
  await fill();
  await reached;
}

async function collect(bench, count, hand) {
  await bench.sink.ask('reset', { goal: count, keepTimes: true });
  const reached = bench.sink.event('reached');
  const at = await pace(count, hand);
  await reached;
  return readDelays(bench.sink, (key) => at.get(key));
}

export const latency = {
  name: 'latency',
  title: `From handing in to arrival, ${PER_SECOND} a second`,
  async run(bench) {
    const count = bench.size({ quick: 1_000, normal: 4_000, long: 12_000 });
    for (let round = 0; round < bench.rounds; round += 1) {
      for (const [label, measure] of [
        ['duepost', measureProduct],
        ['graphile-worker', measureGraphile],
      ]) {
        const delays = await measure(bench, count);
        bench.record({ label: `${label}, p50`, unit: 'ms', value: percentile(delays, 0.5) });
        bench.record({ label: `${label}, p99`, unit: 'ms', value: percentile(delays, 0.99) });
      }
    }
    bench.goal({ text: 'p50 from handing in to arrival', figure: 'duepost, p50', atMost: 5 });
    bench.goal({
      text: "p99 against graphile-worker's",
      ratio: ['duepost, p99', 'graphile-worker, p99'],
      atMost: 2,
    });
  },
};

/** Due instants are wall-clock; the sink's are monotonic. */
const wallMinusMonotonic = () => Date.now() - monotonicMs();

export const instant = {
  name: 'instant',
  title: 'From the due instant to arrival',
  async run(bench) {
    const many = bench.size({ quick: 2_000, normal: 10_000, long: 10_000 });
    const few = bench.size({ quick: 200, normal: 1_000, long: 2_000 });
    for (let round = 0; round < bench.rounds; round += 1) {
      const late = [];
      for (const [label, options] of [
        [`${many} at one instant`, {}],
        [`${many} at one instant, 32 calls at a time`, { maxInFlight: 32 }],
      ]) {
        const delays = await measureDue(bench, many, (startMs) => () => new Date(startMs + 12_000), options);
        bench.record({ label: `${label}, p50`, unit: 'ms', value: percentile(delays, 0.5) });
        bench.record({ label: `${label}, p99`, unit: 'ms', value: percentile(delays, 0.99) });
        late.push(...delays);
      }
      const paced = await measureDue(
        bench,
        few,
        (startMs) => (number) => new Date(startMs + 6_000 + number * 10),
      );
      bench.record({ label: '100 a second, p50', unit: 'ms', value: percentile(paced, 0.5) });
      bench.record({ label: '100 a second, p99', unit: 'ms', value: percentile(paced, 0.99) });
      const early = [...late, ...paced].filter((ms) => ms < -1).length;
      if (early > 0) throw new Error(`${early} arrived before they were due`);
    }
    bench.goal({
      text: 'lateness of many due at one instant, p99',
      figure: `${many} at one instant, p99`,
      atMost: 2_000,
    });
    bench.goal({ text: 'lateness at a modest rate, p50', figure: '100 a second, p50', atMost: 20 });
  },
};

async function measureDue(bench, count, plan, options = {}) {
  const product = await openProduct({ url: bench.sinkUrl, ...options });
  try {
    const endpoint = await product.addEndpoint('sink');
    const role = product.startRoles('worker,reconciler');
    await warmUp(bench, () => product.fill(500, { first: 1_000_000 }), 500);
    await bench.sink.ask('reset', { goal: count, keepTimes: true });
    const reached = bench.sink.event('reached');
    const dueOf = plan(Date.now());
    await Promise.all(
      Array.from({ length: count }, (_, number) =>
        product.request(number, { endpoint: endpoint.endpointId, deliverAt: dueOf(number) }),
      ),
    );
    await reached;
    const offset = wallMinusMonotonic();
    const delays = await readDelays(bench.sink, (key) => dueOf(Number(key.slice(1))).getTime() - offset);
    await product.untilEnded();
    await role.stop();
    return delays;
  } finally {
    await product.close();
  }
}
