// pg-boss with its own tools for volume: insert, fetch of 500, complete by array.

import PgBoss from 'pg-boss';
import { bodyOf, createCaller } from '../call.mjs';
import { answerQuestions } from '../child.mjs';

const QUEUE = 'deliver';
const BATCH = 500;
const LANES = 2;

let caller;
let boss;
let stopping = false;
let left = 0;

async function work() {
  while (!stopping && left > 0) {
    const jobs = await boss.fetch(QUEUE, { batchSize: BATCH });
    if (jobs.length === 0) return;
    await Promise.all(
      jobs.map(({ data: { number } }) => caller.call(`k${number}`, `msg_${number}`, bodyOf(number))),
    );
    await boss.complete(
      QUEUE,
      jobs.map((job) => job.id),
    );
    left -= jobs.length;
  }
}

answerQuestions({
  async prepare(options) {
    caller = await createCaller(options);
    boss = new PgBoss({ connectionString: options.databaseUrl, max: 8, supervise: false, schedule: false });
    boss.on('error', (error) => process.stderr.write(`  pg-boss: ${error.message}\n`));
    await boss.start();
    await boss.createQueue(QUEUE);
    return {};
  },
  async fill({ count }) {
    for (let start = 0; start < count; start += BATCH) {
      await boss.insert(
        Array.from({ length: Math.min(BATCH, count - start) }, (_, i) => ({
          name: QUEUE,
          data: { number: start + i },
        })),
      );
    }
    left = count;
    return {};
  },
  async start() {
    await Promise.all(Array.from({ length: LANES }, work));
    return {};
  },
  async check() {
    const size = await boss.getQueueSize(QUEUE, { before: 'completed' });
    if (size !== 0) throw new Error(`${size} jobs are left`);
    return {};
  },
  async close() {
    stopping = true;
    await boss?.stop({ graceful: false });
    await caller?.close();
  },
});
