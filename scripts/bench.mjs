// npm run bench: measurements, on a PostgreSQL that really writes to the disk.

import { withStack } from './stack/command.mjs';

await withStack({ name: 'npm run bench', environment: 'development', fsync: true }, ({ args, node }) =>
  node(['scripts/bench/main.mjs', ...args]),
);
