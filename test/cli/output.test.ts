import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { openTestDatabase } from '../support/database.ts';
import { openTestProduct } from '../support/product.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const STATUS = /^exit (\d+)$/m;

/** Runs a line of the shell in which `duepost` is the built command line; ends with what `duepost` exited with. */
function runShell(line: string, env: Record<string, string> = {}): Promise<{ code: number; stderr: string }> {
  const script = `set -o pipefail; duepost() { "${process.execPath}" "${MAIN}" "$@"; local code=$?; echo "exit $code" >&2; }; ${line}`;
  const child = spawn('bash', ['-c', script], {
    env: { PATH: process.env['PATH'], DUEPOST_ENV: 'test', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () =>
      resolve({ code: Number(STATUS.exec(stderr)?.[1]), stderr: stderr.replace(/^exit \d+\n/m, '') }),
    );
  });
}

const NO_ROOM = 'duepost: the answer could not be written: ENOSPC: no space left on device, write\n';

describe('a full disk ends a command with 74 and a line', () => {
  test.each([
    '--help',
    'config',
    'topology export',
    'calendar explain --renewal-date 2027-03-31 --notice P30D --jurisdiction DE-BY --json',
  ])('duepost %s', async (args) => {
    expect(await runShell(`duepost ${args} > /dev/full`)).toEqual({ code: 74, stderr: NO_ROOM });
  });

  test('a receiver that cannot tell what it hears', async () => {
    expect(await runShell('duepost receive > /dev/full')).toEqual({ code: 74, stderr: NO_ROOM });
  });

  test('a command that opens the database', async () => {
    const database = await openTestDatabase();
    const env = {
      DUEPOST_DATABASE_URL: database.url,
      DUEPOST_AMQP_URL: process.env['DUEPOST_AMQP_URL'] ?? '',
    };
    expect(await runShell('duepost migrate status --json > /dev/full', env)).toEqual({
      code: 74,
      stderr: NO_ROOM,
    });
    await database.close();
  });
});

describe('a reader that has gone is no failure, and nothing is said', () => {
  test.each(['topology export | head -1', '--help | true'])('duepost %s', async (line) => {
    expect(await runShell(`duepost ${line}`)).toEqual({ code: 0, stderr: '' });
  });

  test('duepost top, which ends', async () => {
    const product = await openTestProduct();
    expect(await runShell('duepost top --json | head -1', product.env)).toEqual({ code: 0, stderr: '' });
    await product.close();
  });

  test('a complaint that nobody hears', async () => {
    const child = spawn(process.execPath, [MAIN, 'nonsense'], { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.destroy();
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(2);
  });
});
