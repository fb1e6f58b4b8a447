// A broker starts empty: what runs on it finds its queues gone until somebody declares them.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { logs, root } from './place.mjs';
import { run } from './process.mjs';
import { say } from './report.mjs';

const program = join(root, 'dist/main.js');

/** Declares everything again, and has wake-ups published again, for a product that runs on the broker before this one. */
export async function applyTopology({ env, signal }) {
  if (!existsSync(program)) return;
  await run(process.execPath, [program, 'topology', 'apply', '--refeed'], {
    cwd: root,
    env,
    signal,
    what: 'duepost topology apply',
    log: join(logs, 'topology.log'),
  });
  say('rabbitmq', 'it started empty: queues declared again for npm start');
}
