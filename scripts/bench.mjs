// npm run bench: measurements, on a PostgreSQL that really writes to the disk.

import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { withStack } from './stack/command.mjs';
import { npmCi } from './stack/npm.mjs';
import { logs, root } from './stack/place.mjs';
import { say } from './stack/report.mjs';

const folder = join(root, 'scripts/bench');

/** What duepost is compared with is no dependency of duepost: installed when it is needed. */
async function installPeers() {
  const installed = join(folder, 'node_modules/.package-lock.json');
  const wanted = statSync(join(folder, 'package-lock.json')).mtimeMs;
  if (existsSync(installed) && statSync(installed).mtimeMs >= wanted) return;
  say('npm', 'installing what is compared with');
  await npmCi(folder, { log: join(logs, 'npm-ci-bench.log'), args: ['--ignore-scripts'] });
}

await withStack(
  { name: 'npm run bench', environment: 'development', fsync: true },
  async ({ args, node }) => {
    await installPeers();
    return node(['scripts/bench/main.mjs', ...args]);
  },
);
