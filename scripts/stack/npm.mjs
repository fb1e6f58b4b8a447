// node_modules and dist: brought up to date when they are not.

import { existsSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { logs, root } from './place.mjs';
import { run } from './process.mjs';
import { Failure, lastLines, say } from './report.mjs';

const buildLog = join(logs, 'build.log');

/** `npm ci` in a folder, with the npm that runs us when there is one; NODE_ENV=production must not leave tools out. */
export function npmCi(folder, { log, args = [], signal }) {
  const all = ['ci', '--include=dev', '--no-audit', '--no-fund', ...args];
  const cli = process.env.npm_execpath ?? '';
  const [file, start] = basename(cli) === 'npm-cli.js' ? [process.execPath, [cli]] : ['npm', []];
  return run(file, [...start, ...all], { cwd: folder, what: `npm ${all.join(' ')}`, log, signal });
}

function modifiedAt(file) {
  return existsSync(file) ? statSync(file).mtimeMs : 0;
}

/** npm writes `.package-lock.json` last, so its age is that of a finished install. */
export async function installModules(signal) {
  const installedAt = modifiedAt(join(root, 'node_modules/.package-lock.json'));
  if (installedAt > 0 && installedAt >= modifiedAt(join(root, 'package-lock.json'))) return;
  say('npm', 'installing node_modules');
  await npmCi(root, { log: join(logs, 'npm-ci.log'), signal });
  say('npm', 'node_modules installed');
}

/**
 * Compiles src to dist. Its memory lies in dist, so a removed dist is made again, and files that
 * did not change are not written again while another command runs them.
 */
export async function build(signal) {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const args = ['-p', 'tsconfig.build.json', '--incremental', '--tsBuildInfoFile', 'dist/.tsbuildinfo'];
  try {
    await run(process.execPath, [tsc, ...args], { cwd: root, what: 'the build', log: buildLog, signal });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure('src does not compile', { advice: lastLines(buildLog, 40) });
  }
  say('npm', 'dist built');
}
