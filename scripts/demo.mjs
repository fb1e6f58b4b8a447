// npm run demo: the servers, then the product's own demonstration.

import { withStack } from './stack/command.mjs';

await withStack({ name: 'npm run demo', environment: 'development' }, ({ args, node }) =>
  node(['dist/main.js', 'demo', ...args]),
);
