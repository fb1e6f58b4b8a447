// What changes with size: more rows, longer runs, slow neighbours, more workers, nothing to do at all.

import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs, perDelivery, readProcessors } from '../drain.mjs';
import { processorMs, residentBytes } from '../processor.mjs';
import { openProduct } from '../product.mjs';

/** Drains what is there with as many workers as asked; @returns deliveries a second and more */
async function drainWith(bench, product, { count, goal = count, workers = 1, watch }) {
  await bench.sink.ask('reset', { goal });
  const first = bench.sink.event('first');
  const reached = bench.sink.event('reached');
  const roles = Array.from({ length: workers }, () => product.startRoles('worker'));
  await first;
  const before = readProcessors(roles[0].pid);
  const watching = watch?.(roles);
  await reached;
  const report = await bench.sink.ask('report');
  const seconds = (report.lastAt - report.firstAt) / 1_000;
  const cpu = perDelivery(before, readProcessors(roles[0].pid), goal);
  watching?.();
  return { perSecond: goal / seconds, cpu, stop: () => Promise.all(roles.map((r) => r.stop())) };
}

/** Deliveries scheduled for weeks ahead: rows that are in the way of everything else. */
async function seedFuture(product, endpointId, count) {
  const step = 250_000;
  for (let first = 0; first < count; first += step) {
    await product.pool.query({
      text: `
        with seeded as (
          select n, id_lower_bound('dlv', now() - interval '20 days' + n * interval '100 milliseconds') || lpad(n::text, 16, '0') as delivery_id,
                 'evt_' || lpad(n::text, 26, '0') as event_id
            from generate_series($1::int, $2::int) as n
        ), bodies as (
          insert into body (source_id, bytes, sha256, data_offset)
          select event_id, convert_to(repeat('x', 300), 'UTF8'), '\\x00', 0 from seeded
        )
        insert into delivery (delivery_id, event_id, endpoint_id, idempotency_key, state, due_at, scheduled_at, trail_length, trail_sha256)
        select delivery_id, event_id, $3, 'seed' || n, 'due', now() + interval '1 day' + (n % 5000000) * interval '1 second',
               now() + interval '1 day' + (n % 5000000) * interval '1 second', 1, '\\x00'
          from seeded`,
      values: [first, Math.min(first + step, count) - 1, endpointId],
      query_timeout: 600_000,
    });
  }
  await product.pool.query({ text: 'analyze delivery', query_timeout: 600_000 });
}

export const growth = {
  name: 'growth',
  title: 'Delivering beside rows that wait',
  async run(bench) {
    const count = bench.size({ quick: 3_000, normal: 20_000, long: 50_000 });
    const sizes = bench.size({
      quick: [10_000, 50_000],
      normal: [10_000, 1_000_000],
      long: [10_000, 1_000_000, 10_000_000],
    });
    const env = { DUEPOST_DATABASE_STATEMENT_TIMEOUT_MS: '600000' };
    for (let round = 0; round < bench.rounds; round += 1) {
      for (const size of sizes) {
        const product = await openProduct({ url: bench.sinkUrl, env });
        try {
          const endpoint = await product.addEndpoint('sink');
          await seedFuture(product, endpoint.endpointId, size);
          await product.fill(count, { endpoint: endpoint.endpointId });
          const { perSecond, cpu, stop } = await drainWith(bench, product, { count });
          await stop();
          bench.record({
            label: `beside ${size.toLocaleString('en')} rows`,
            unit: 'deliveries/s',
            value: perSecond,
            cpu,
          });
          bench.record({
            label: `database, beside ${size.toLocaleString('en')} rows`,
            unit: 'µs/delivery',
            value: cpu.database,
          });
        } finally {
          await product.close();
        }
      }
    }
    const [small, large] = [sizes[0], sizes.at(-1)].map(
      (size) => `database, beside ${size.toLocaleString('en')} rows`,
    );
    bench.goal({
      text: `cost per delivery at ${sizes.at(-1).toLocaleString('en')} rows against ${sizes[0].toLocaleString('en')}`,
      ratio: [large, small],
      atMost: 1.2,
    });
  },
};

export const size = {
  name: 'size',
  title: 'Bytes kept, a third of the deliveries retried',
  async run(bench) {
    const count = bench.size({ quick: 5_000, normal: 50_000, long: 200_000 });
    const product = await openProduct({ url: bench.sinkUrl });
    try {
      await product.addEndpoint('good', '/ok', { event_types: ['none'] });
      await product.addEndpoint('flaky', '/fail/1', {
        event_types: ['none'],
        policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 3 },
      });
      const flaky = Math.floor(count / 3);
      await product.fill(count - flaky, { endpoint: 'good' });
      await product.fill(flaky, { first: count, endpoint: 'flaky' });
      const { stop } = await drainWith(bench, product, { count });
      await product.untilEnded();
      await stop();
      await product.check(count, count + flaky);
      const { rows } = await product.pool.query(
        `select coalesce(p.parent, c.relname) as name, sum(pg_relation_size(c.oid))::float8 as heap,
                sum(pg_indexes_size(c.oid))::float8 as indexes
           from pg_class c
           left join lateral (
             select split_part(i.inhparent::regclass::text, '_event', 1) as parent
               from pg_inherits i where i.inhrelid = c.oid and i.inhparent::regclass::text like '%\\_event') p on true
          where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
          group by 1 having sum(pg_total_relation_size(c.oid)) > 500000 order by 2 desc`,
      );
      for (const { name, heap, indexes } of rows) {
        bench.record({ label: `${name}, table`, unit: 'bytes/delivery', value: heap / count });
        bench.record({ label: `${name}, indexes`, unit: 'bytes/delivery', value: indexes / count });
      }
    } finally {
      await product.close();
    }
  },
};

export const neighbours = {
  name: 'neighbours',
  title: 'Slow neighbours: 1 % of the endpoints hang until the timeout',
  async run(bench) {
    const perEndpoint = bench.size({ quick: 50, normal: 300, long: 1_000 });
    const endpoints = 100;
    for (let round = 0; round < bench.rounds; round += 1) {
      for (const hanging of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const product = await openProduct({
          url: bench.sinkUrl,
          maxInFlight: 32,
          env: { DUEPOST_EGRESS_TIMEOUT_MS: '3000', DUEPOST_CLAIM_LEASE_MS: '8000' },
        });
        try {
          for (let i = 0; i < endpoints; i += 1) {
            await product.addEndpoint(`e${i}`, i < hanging ? '/hang' : '/ok', { event_types: ['none'] });
          }
          const numbers = Array.from({ length: perEndpoint * endpoints }, (_, n) => n);
          for (let start = 0; start < numbers.length; start += 2_000) {
            await Promise.all(
              numbers
                .slice(start, start + 2_000)
                .map((n) => product.request(n, { endpoint: `e${n % endpoints}` })),
            );
          }
          await product.parts.announcer.drain();
          const goal = perEndpoint * (endpoints - hanging);
          const { perSecond, cpu, stop } = await drainWith(bench, product, { count: numbers.length, goal });
          await stop();
          bench.record({
            label: hanging === 0 ? 'all healthy' : 'the others, when 1 % hang',
            unit: 'deliveries/s',
            value: perSecond,
            cpu,
          });
        } finally {
          await product.close();
        }
      }
    }
    bench.goal({
      text: 'rate of the others when 1 % hang',
      ratio: ['the others, when 1 % hang', 'all healthy'],
      atLeast: 0.8,
    });
  },
};

export const memory = {
  name: 'memory',
  title: 'Memory of a worker over a long drain',
  async run(bench) {
    const count = bench.size({ quick: 20_000, normal: 100_000, long: 300_000 });
    const product = await openProduct({ url: bench.sinkUrl });
    try {
      await product.addEndpoint('sink');
      await product.fill(count);
      const samples = [];
      const { stop } = await drainWith(bench, product, {
        count,
        watch: ([role]) => {
          const timer = setInterval(() => samples.push(residentBytes(role.pid)), 200);
          return () => clearInterval(timer);
        },
      });
      await stop();
      const megabytes = samples.filter((bytes) => bytes > 0).map((bytes) => bytes / 1_048_576);
      const third = Math.ceil(megabytes.length / 3);
      for (const [label, part] of [
        ['highest', megabytes],
        ['highest, second third', megabytes.slice(third, 2 * third)],
        ['highest, last third', megabytes.slice(2 * third)],
      ]) {
        if (part.length > 0) bench.record({ label, unit: 'MB', value: Math.max(...part) });
      }
    } finally {
      await product.close();
    }
    bench.goal({ text: 'memory of a worker', figure: 'highest', atMost: 200 });
    bench.goal({
      text: 'memory is flat',
      ratio: ['highest, last third', 'highest, second third'],
      atMost: 1.15,
    });
  },
};

export const workers = {
  name: 'workers',
  title: 'More workers on one machine',
  async run(bench) {
    const count = bench.size({ quick: 5_000, normal: 50_000, long: 100_000 });
    for (let round = 0; round < bench.rounds; round += 1) {
      for (const number of [1, 2, 3]) {
        const product = await openProduct({ url: bench.sinkUrl });
        try {
          await product.addEndpoint('sink');
          await product.fill(count);
          const { perSecond, stop } = await drainWith(bench, product, { count, workers: number });
          await product.untilEnded();
          await product.check(count);
          await stop();
          bench.record({
            label: `${number} ${number === 1 ? 'worker' : 'workers'}`,
            unit: 'deliveries/s',
            value: perSecond,
          });
        } finally {
          await product.close();
        }
      }
    }
  },
};

export const idle = {
  name: 'idle',
  title: 'At rest',
  async run(bench) {
    const seconds = bench.size({ quick: 10, normal: 30, long: 60 });
    const product = await openProduct({ url: bench.sinkUrl });
    try {
      await product.addEndpoint('sink');
      for (const roles of ['worker', 'reconciler', 'ingress,worker,reconciler']) {
        const role = product.startRoles(roles);
        await pause(5_000);
        const startMs = monotonicMs();
        const before = processorMs(role.pid);
        await pause(seconds * 1_000);
        const share = (100 * (processorMs(role.pid) - before)) / (monotonicMs() - startMs);
        bench.record({ label: roles, unit: '% of a core', value: share });
        await role.stop();
      }
    } finally {
      await product.close();
    }
    bench.goal({ text: 'a worker at rest', figure: 'worker', atMost: 1 });
  },
};
