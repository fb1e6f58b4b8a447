import { defineConfig } from 'vitest/config';

/** What exchanges modules of Node for its own must not meet those that others have loaded. */
const ISOLATED = ['test/egress/guard.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 3,
    projects: [
      { extends: true, test: { name: 'isolated', include: ISOLATED } },
      // Loading the product anew for every file took a third of the time.
      {
        extends: true,
        test: { name: 'together', include: ['test/**/*.test.ts'], exclude: ISOLATED, isolate: false },
      },
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'json-summary'],
    },
  },
});
