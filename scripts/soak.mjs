// npm run soak -- [--deliveries N] [--faults N] [--client node-fetch|undici] [--seed N]: delivers under faults, on servers
// of its own, and writes a report.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

// Before the stack is loaded: servers that get killed must not be anybody else's.
process.env.STACK_PART = 'soak';
const { runScript } = await import('./stack/command.mjs');
const { build, installModules } = await import('./stack/npm.mjs');
const { local, logs } = await import('./stack/place.mjs');
const { startServers } = await import('./soak/servers.mjs');
// The product's processes refuse what they do not know, and would inherit it; nor is this run about anybody's servers.
for (const name of Object.keys(process.env))
  if (name === 'STACK_PART' || name.startsWith('DUEPOST_')) delete process.env[name];

const usage = 'usage: npm run soak -- [--deliveries N] [--faults N] [--client node-fetch|undici] [--seed N]';

function readOptions() {
  const { values } = parseArgs({
    options: {
      deliveries: { type: 'string', default: '10000' },
      faults: { type: 'string', default: '40' },
      client: { type: 'string', default: 'node-fetch' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    },
  });
  const options = {
    client: values.client,
    deliveries: Number(values.deliveries),
    faults: Number(values.faults),
    seed: Number(values.seed),
  };
  const numbers = [options.deliveries, options.faults, options.seed];
  const isGood = numbers.every((n) => Number.isSafeInteger(n) && n >= 0);
  if (!isGood || !['node-fetch', 'undici'].includes(options.client)) throw new Error(usage);
  return options;
}

function toText(report) {
  const { seed, client, deliveries, tookSeconds, faults, violations } = report;
  const kinds = Object.entries(countKinds(faults));
  return [
    violations.length === 0
      ? 'nothing lost, no effect twice, one audit record each'
      : `${violations.length} violations`,
    `again with: npm run soak -- --deliveries ${deliveries} --faults ${faults.length} --client ${client} --seed ${seed}`,
    `${deliveries} commands, ${faults.length} faults, ${report.processStarts} process starts in ${tookSeconds} s`,
    `deliveries: ${describe(report.states)}`,
    `attempts: ${describe(report.outcomes)}`,
    `at the receivers: ${report.calls} calls, ${report.effects} effects, ${report.repeats} calls for what had taken effect`,
    `faults: ${kinds.map(([name, of]) => `${of.length} ${name}`).join(', ')}`,
    ...violations,
    '',
  ].join('\n');
}

function countKinds(faults) {
  const kinds = {};
  for (const fault of faults) (kinds[fault.fault] ??= []).push(fault);
  return kinds;
}

const describe = (counts) =>
  Object.entries(counts)
    .map(([name, n]) => `${n} ${name}`)
    .join(', ');

let vite;

/** The run is TypeScript, and shared with the tests: what runs those runs this. */
async function loadRun() {
  const { createServer } = await import('vite');
  vite = await createServer({
    configFile: false,
    appType: 'custom',
    logLevel: 'error',
    optimizeDeps: { noDiscovery: true },
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  });
  return vite.ssrLoadModule(join(import.meta.dirname, '../test/fault/soak/run.ts'));
}

await runScript(async ({ signal }) => {
  let options;
  try {
    options = readOptions();
  } catch {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  process.stderr.write(`seed ${options.seed}\n`);
  mkdirSync(logs, { recursive: true });
  await installModules(signal);
  await build(signal);
  const servers = await startServers(signal);
  // A Ctrl-C ends the servers, and the run with them.
  const stopped = new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('interrupted'))),
  );
  try {
    const module = await loadRun();
    const { databaseUrl, amqpUrl, targets } = servers;
    const say = (line) => process.stderr.write(`${line}\n`);
    const run = module.runSoak({
      ...options,
      databaseUrl,
      amqpUrl,
      targets,
      servers: servers.faults,
      prefix: 'soak',
      say,
    });
    const report = await Promise.race([run, stopped]);
    const file = join(local, `report-${options.client}-${options.seed}`);
    writeFileSync(`${file}.json`, `${JSON.stringify(report, undefined, 2)}\n`);
    writeFileSync(`${file}.txt`, toText(report));
    process.stdout.write(`${toText(report)}${file}.json\n`);
    return report.violations.length === 0 ? 0 : 1;
  } finally {
    await vite?.close();
    await servers.stop();
  }
});
