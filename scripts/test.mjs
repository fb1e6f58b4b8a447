// npm test [-- vitest arguments]: servers, build, tests with coverage; ends with "N passed, N failed".

import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { withStack } from './stack/command.mjs';
import { local, root } from './stack/place.mjs';

// Of this run alone: two at once would delete each other's.
const reportFile = join(local, `vitest.${process.pid}.json`);
const coverageFolder = join(local, `coverage.${process.pid}`);

/** Counts what vitest wrote down; a file that could not even be loaded has no failed test, but has failed. */
function readCounts() {
  try {
    const report = JSON.parse(readFileSync(reportFile, 'utf8'));
    const unloaded = report.testResults.filter(({ status, assertionResults }) => {
      return status === 'failed' && !assertionResults.some((test) => test.status === 'failed');
    });
    return { passed: report.numPassedTests, failed: report.numFailedTests + unloaded.length };
  } catch {
    return { passed: 0, failed: 0 };
  } finally {
    rmSync(reportFile, { force: true });
  }
}

function publishCoverage() {
  if (!existsSync(coverageFolder)) return;
  rmSync(join(root, 'coverage'), { recursive: true, force: true });
  renameSync(coverageFolder, join(root, 'coverage'));
}

let code = 1;
await withStack({ name: 'npm test', environment: 'test' }, async ({ args, node }) => {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const coverage = ['--coverage', `--coverage.reportsDirectory=${coverageFolder}`];
  code = await node(['node_modules/vitest/vitest.mjs', 'run', ...coverage, ...reporters, ...args]);
  publishCoverage();
  return code;
});

// Last of all, after the servers have stopped. A run that failed without a failed test still counts as one failure.
const { passed, failed } = readCounts();
process.stdout.write(`${passed} passed, ${code !== 0 && failed === 0 ? 1 : failed} failed\n`);
