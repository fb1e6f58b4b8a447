// npm run bench [-- --quick | --long] [--only PART,PART] [--rounds N] [--against FOLDER] [--out FOLDER]

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createBench } from './bench.mjs';
import { startChild } from './child.mjs';
import { describeEnvironment } from './environment.mjs';
import { removeLeftoversOnSignal } from './leftovers.mjs';
import { root } from './modules.mjs';
import { drawPage, printSummary } from './page.mjs';
import { drain } from './parts/drain.mjs';
import { ingest, together } from './parts/ingest.mjs';
import { instant, latency } from './parts/latency.mjs';
import { growth, idle, memory, neighbours, size, workers } from './parts/scale.mjs';
import { dropTemplates } from './product.mjs';

const PARTS = [drain, ingest, together, latency, instant, growth, size, neighbours, memory, workers, idle];
const ROUNDS = { quick: 1, normal: 3, long: 5 };
const usage = `usage: npm run bench [-- --quick | --long] [--only ${PARTS.map((part) => part.name).join(',')}] [--rounds N]
                          [--against FOLDER of another built checkout] [--out FOLDER]
BullMQ takes part where BENCH_REDIS_URL names a Redis.`;

const say = (text) => process.stdout.write(`${text}\n`);

function readArguments() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean' },
      long: { type: 'boolean' },
      only: { type: 'string' },
      rounds: { type: 'string' },
      against: { type: 'string' },
      out: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  const mode = values.quick ? 'quick' : values.long ? 'long' : 'normal';
  const names = values.only?.split(',') ?? PARTS.map((part) => part.name);
  const unknown = names.filter((name) => !PARTS.some((part) => part.name === name));
  const rounds = values.rounds === undefined ? ROUNDS[mode] : Number(values.rounds);
  if (values.help || unknown.length > 0 || !(rounds >= 1)) throw new Error(usage);
  return {
    mode,
    rounds,
    parts: PARTS.filter((part) => names.includes(part.name)),
    against: values.against === undefined ? undefined : resolve(values.against),
    out: resolve(values.out ?? join(root, '.local/bench')),
  };
}

async function main() {
  const { mode, rounds, parts, against, out } = readArguments();
  const environment = await describeEnvironment();
  for (const [name, value] of Object.entries(environment)) say(`  ${name.padEnd(11)} ${value}`);
  removeLeftoversOnSignal();
  const sink = startChild('./sink.mjs');
  const { port } = await sink.event('listening');
  const bench = createBench({ sink, sinkUrl: `http://127.0.0.1:${port}`, mode, rounds, against, say });
  const results = [];
  try {
    for (const part of parts) results.push(await bench.run(part));
  } finally {
    await dropTemplates();
    await sink.stop();
  }
  printSummary(results, say);
  mkdirSync(out, { recursive: true });
  const report = { environment, mode, rounds, parts: results };
  writeFileSync(join(out, 'bench.json'), `${JSON.stringify(report, undefined, 1)}\n`);
  writeFileSync(join(out, 'bench.html'), drawPage(report));
  say(`\n${join(out, 'bench.html')} and bench.json`);
  return results.some((part) => part.failure !== undefined) ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error?.message === usage ? usage : error?.stack}\n`);
  process.exitCode = error?.message === usage ? 2 : 1;
}
process.exit();
