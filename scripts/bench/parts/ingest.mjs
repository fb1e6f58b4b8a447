// How fast work is taken in: committed, and announced to the broker.

import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs, perDelivery, readProcessors } from '../drain.mjs';
import { connectProducer, postEvents } from '../producer.mjs';
import { openProduct } from '../product.mjs';

async function untilAnnounced(product, count) {
  const queue = `${product.prefix}.v1.deliveries`;
  for (;;) {
    const ready = await product.parts.publisher.countReady(queue);
    if (ready === count) return;
    if (ready > count) throw new Error(`${ready} wake-ups for ${count} deliveries`);
    await pause(20);
  }
}

/** Runs `send` against a product with the roles given; from the first request until all is committed and announced. */
async function measure(bench, { label, roles, count, env, send }) {
  const product = await openProduct({ url: bench.sinkUrl, env });
  try {
    await product.addEndpoint('sink');
    const role = product.startRoles(roles);
    const producer = await send.open(product);
    const before = readProcessors(role.pid);
    const startMs = monotonicMs();
    await producer.run(count);
    const sentMs = monotonicMs() - startMs;
    await untilAnnounced(product, count);
    const seconds = (monotonicMs() - startMs) / 1_000;
    const { rows } = await product.pool.query('select count(*)::int as count from delivery');
    if (rows[0].count !== count) throw new Error(`${count} commands made ${rows[0].count} deliveries`);
    const cpu = perDelivery(before, readProcessors(role.pid), count);
    bench.record({
      label,
      unit: 'deliveries/s',
      value: count / seconds,
      cpu,
      more: { confirmedPerSecond: (count * 1_000) / sentMs },
    });
    await producer.close?.();
    await role.stop();
  } finally {
    await product.close();
  }
}

const overAmqp = {
  async open(product) {
    const producer = await connectProducer(product);
    // The consumer is there once the first command has become a row.
    await producer.publish(-1);
    await untilAnnounced(product, 1);
    await product.pool.query('select 1');
    return { run: (count) => producer.publishMany(count - 1), close: () => producer.close() };
  },
};

function overHttp({ port, batch, concurrent }) {
  return {
    async open(product) {
      const { key } = await product.createKey();
      const url = `http://127.0.0.1:${port}`;
      await untilAnswers(url);
      return { run: (count) => postEvents({ url, key, count, batch, concurrent }) };
    },
  };
}

async function untilAnswers(url) {
  for (;;) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await pause(50);
  }
}

export const ingest = {
  name: 'ingest',
  title: 'Taking work in: committed and announced',
  async run(bench) {
    const count = bench.size({ quick: 5_000, normal: 50_000, long: 100_000 });
    for (let round = 0; round < bench.rounds; round += 1) {
      await measure(bench, { label: 'AMQP with confirms', roles: 'ingress', count, send: overAmqp });
      for (const [label, batch, concurrent] of [
        ['HTTP, one event a call, 64 at a time', 1, 64],
        ['HTTP, 100 events a call, 4 at a time', 100, 4],
      ]) {
        const port = await bench.freePort();
        await measure(bench, {
          label,
          roles: 'api',
          count,
          env: { DUEPOST_HTTP_PORT: String(port), DUEPOST_API_RATE_LIMIT_PER_MINUTE: '1000000' },
          send: overHttp({ port, batch, concurrent }),
        });
      }
    }
    bench.goal({
      text: 'ingest over AMQP, committed and announced',
      figure: 'AMQP with confirms',
      atLeast: 10_000,
    });
  },
};

export const together = {
  name: 'together',
  title: 'Taking in and delivering at the same time',
  async run(bench) {
    const count = bench.size({ quick: 5_000, normal: 50_000, long: 200_000 });
    for (let round = 0; round < bench.rounds; round += 1) {
      const product = await openProduct({ url: bench.sinkUrl });
      try {
        await product.addEndpoint('sink');
        // The roles meet empty tables, as on the first day: plans must not be made for those.
        const role = product.startRoles('ingress,worker,reconciler');
        const producer = await connectProducer(product);
        await bench.sink.ask('reset', { goal: 1 });
        const first = bench.sink.event('reached');
        await producer.publish(-1);
        await first;
        await bench.sink.ask('reset', { goal: count });
        const reached = bench.sink.event('reached');
        const before = readProcessors(role.pid);
        const startMs = monotonicMs();
        await producer.publishMany(count);
        await reached;
        await product.untilEnded();
        const seconds = (monotonicMs() - startMs) / 1_000;
        const cpu = perDelivery(before, readProcessors(role.pid), count);
        await product.check(count + 1);
        bench.record({ label: 'one process, all roles', unit: 'deliveries/s', value: count / seconds, cpu });
        await producer.close();
        await role.stop();
      } finally {
        await product.close();
      }
    }
  },
};
