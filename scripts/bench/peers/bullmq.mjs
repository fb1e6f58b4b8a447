// BullMQ on a Redis that was named.

import { Queue, Worker } from 'bullmq';
import { bodyOf, createCaller } from '../call.mjs';
import { answerQuestions } from '../child.mjs';

let caller;
let queue;
let worker;
let connection;
let name;

answerQuestions({
  async prepare(options) {
    caller = await createCaller(options);
    const url = new URL(process.env.BENCH_REDIS_URL);
    connection = {
      host: url.hostname,
      port: Number(url.port) || 6379,
      db: Number(url.pathname.slice(1)) || 0,
      password: url.password || undefined,
      maxRetriesPerRequest: null,
    };
    name = `bench-${process.pid}-${Date.now()}`;
    queue = new Queue(name, { connection });
    return {};
  },
  async fill({ count }) {
    for (let start = 0; start < count; start += 1_000) {
      await queue.addBulk(
        Array.from({ length: Math.min(1_000, count - start) }, (_, i) => ({
          name: 'deliver',
          data: { number: start + i },
          opts: { removeOnComplete: true },
        })),
      );
    }
    return {};
  },
  async start() {
    worker = new Worker(
      name,
      async ({ data: { number } }) => caller.call(`k${number}`, `msg_${number}`, bodyOf(number)),
      { connection, concurrency: 256 },
    );
    worker.on('error', (error) => process.stderr.write(`  BullMQ: ${error.message}\n`));
    return {};
  },
  async check() {
    for (;;) {
      const counts = await queue.getJobCounts('waiting', 'active', 'failed', 'delayed');
      if (Object.values(counts).every((count) => count === 0)) return {};
    }
  },
  async close() {
    await worker?.close();
    await queue?.obliterate({ force: true });
    await queue?.close();
    await caller?.close();
  },
});
