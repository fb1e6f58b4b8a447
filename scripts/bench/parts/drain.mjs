// How fast one process delivers what is there already, beside others that do the same.

import { drainPeer, drainProduct } from '../drain.mjs';

/** In the order of a round; the order turns from round to round, so that nobody always follows the same one. */
function listLanes({ against }) {
  const peer = (label, file, options) => ({
    label,
    run: (sink, common) => drainPeer(sink, { ...common, file, client: 'undici', ...options }),
  });
  const ours = (label, client, folder) => ({
    label,
    run: (sink, common) => drainProduct(sink, { ...common, client, folder }),
  });
  return [
    peer('HTTP only, undici', 'http-only.mjs', { hasDatabase: false }),
    ours('duepost, undici', 'undici'),
    ...(against === undefined ? [] : [ours('duepost of --against, undici', 'undici', against)]),
    peer('graphile-worker, tuned', 'graphile.mjs'),
    peer('graphile-worker, a row per attempt', 'graphile.mjs', { options: { attemptRows: true } }),
    peer('pg-boss, fetch 500', 'pg-boss.mjs'),
    ...(process.env.BENCH_REDIS_URL ? [peer('BullMQ', 'bullmq.mjs', { hasDatabase: false })] : []),
    peer('HTTP only, node-fetch', 'http-only.mjs', { hasDatabase: false, client: 'node-fetch' }),
    ours('duepost, node-fetch', 'node-fetch'),
    ...(against === undefined ? [] : [ours('duepost of --against, node-fetch', 'node-fetch', against)]),
  ];
}

export const drain = {
  name: 'drain',
  title: 'Draining a backlog, one process each',
  async run(bench) {
    const count = bench.size({ quick: 5_000, normal: 50_000, long: 100_000 });
    const lanes = listLanes(bench);
    for (let round = 0; round < bench.rounds; round += 1) {
      for (let i = 0; i < lanes.length; i += 1) {
        const { label, run } = lanes[(i + round) % lanes.length];
        const result = await run(bench.sink, { count, sinkUrl: bench.sinkUrl });
        bench.record({ label, unit: 'deliveries/s', value: result.perSecond, cpu: result.cpuMicroseconds });
      }
    }
    bench.note(
      `${count} deliveries a run; effects, calls, rows, attempts and audit records were compared after each`,
    );
    const share = (goal, text, ours, theirs) => bench.goal({ text, ratio: [ours, theirs], atLeast: goal });
    share(1.2, 'undici lane against tuned graphile-worker', 'duepost, undici', 'graphile-worker, tuned');
    share(
      3,
      'undici lane against graphile-worker with a row per attempt',
      'duepost, undici',
      'graphile-worker, a row per attempt',
    );
    share(0.45, 'share of the HTTP-only limit, undici', 'duepost, undici', 'HTTP only, undici');
    share(0.8, 'share of the HTTP-only limit, node-fetch', 'duepost, node-fetch', 'HTTP only, node-fetch');
  },
};
