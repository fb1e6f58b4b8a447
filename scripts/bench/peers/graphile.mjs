// graphile-worker, tuned: a local queue, batched completion, no attempt history unless `attemptRows` asks for one.

import { run } from 'graphile-worker';
import { bodyOf, createCaller } from '../call.mjs';
import { answerQuestions } from '../child.mjs';
import { importFrom } from '../modules.mjs';

const { default: pg } = await importFrom('pg');

let caller;
let pool;
let runner;
let attemptRows = false;
let localQueue = true;

async function deliver({ number }, { job }) {
  const startedAt = new Date();
  await caller.call(`k${number}`, `msg_${number}`, bodyOf(number));
  if (!attemptRows) return;
  await pool.query({
    name: 'attempt',
    text: 'insert into attempt (job_id, attempt, status, started_at, finished_at) values ($1, $2, 200, $3, now())',
    values: [job.id, job.attempts, startedAt],
  });
}

const preset = () => ({
  worker: {
    concurrentJobs: 128,
    pollInterval: 100,
    ...(localQueue ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {}),
  },
});

answerQuestions({
  async prepare(options) {
    attemptRows = options.attemptRows ?? false;
    localQueue = options.localQueue ?? true;
    caller = await createCaller(options);
    pool = new pg.Pool({ connectionString: options.databaseUrl, max: attemptRows ? 16 : 8 });
    pool.on('error', (error) => process.stderr.write(`  graphile-worker: ${error.message}\n`));
    pool.on('connect', (client) => client.on('error', () => {}));
    const { runMigrations } = await import('graphile-worker');
    await runMigrations({ pgPool: pool });
    await pool.query(
      `create table if not exists attempt (job_id bigint, attempt int, status int, started_at timestamptz, finished_at timestamptz,
                             primary key (job_id, attempt))`,
    );
    return {};
  },
  async fill({ count, first = 0 }) {
    for (let start = first; start < first + count; start += 5_000) {
      await pool.query(
        `select graphile_worker.add_jobs(array(
           select ('deliver', json_build_object('number', n), null, null, null, null, null, null)::graphile_worker.job_spec
             from generate_series($1::int, $2::int) as n))`,
        [start, Math.min(start + 5_000, first + count) - 1],
      );
    }
    return {};
  },
  /** One at a time, as a producer does. */
  async add({ number, runAt }) {
    await pool.query({
      name: 'add',
      text: `select graphile_worker.add_job('deliver', json_build_object('number', $1::int), run_at := $2)`,
      values: [number, runAt ?? new Date()],
    });
    return {};
  },
  async start() {
    runner = await run({
      pgPool: pool,
      taskList: { deliver },
      noHandleSignals: true,
      logger: await silence(),
      preset: preset(),
    });
    return {};
  },
  async check() {
    for (;;) {
      const { rows } = await pool.query(
        `select (select count(*) from graphile_worker._private_jobs)::int as left,
                (select count(*) from attempt)::int as attempts`,
      );
      if (rows[0].left === 0) return rows[0];
    }
  },
  async close() {
    await runner?.stop();
    await pool?.end();
    await caller?.close();
  },
});

async function silence() {
  const { Logger } = await import('graphile-worker');
  return new Logger(() => (level, message) => {
    if (level === 'error') process.stderr.write(`  graphile-worker: ${message}\n`);
  });
}
