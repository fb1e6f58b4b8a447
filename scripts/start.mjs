// npm start: servers, schema and topology, then every role in the foreground.

import { withStack } from './stack/command.mjs';
import { say } from './stack/report.mjs';

await withStack({ name: 'npm start', environment: 'development' }, async ({ args, node }) => {
  for (const preparation of [['migrate'], ['topology', 'apply']]) {
    const code = await node(['dist/main.js', ...preparation]);
    if (code !== 0) return code;
  }
  say('start', 'in another shell, for the command line: eval "$(npm run -s services -- up)"');
  return node(['dist/main.js', 'start', ...args]);
});
