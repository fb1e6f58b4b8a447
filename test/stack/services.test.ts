import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';

// A stack of its own, of PostgreSQL alone: the broker is the one of the test run.
const STACK = { STACK_PART: `test-${randomBytes(4).toString('hex')}` };

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function services(command: string, env: Record<string, string> = {}): Promise<Result> {
  const child = spawn(process.execPath, [join(packageRoot, 'scripts/services.mjs'), command], {
    env: { ...process.env, DUEPOST_DATABASE_URL: '', ...STACK, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

const databaseUrl = ({ stdout, stderr }: Result): string =>
  /DUEPOST_DATABASE_URL='(.*)'/.exec(stdout)?.[1] ?? `none: ${stderr}`;

afterAll(() => services('reset'));

test('a shell that names private servers which have stopped gets them started again', async () => {
  const first = databaseUrl(await services('up'));
  const running = await services('up', { DUEPOST_DATABASE_URL: first });
  expect([databaseUrl(running), running.stderr]).toEqual([first, expect.stringContaining('running already')]);
  await services('down');

  const again = await services('up', { DUEPOST_DATABASE_URL: first });
  expect(again.stderr).toContain('names a private server that has stopped');
  const url = databaseUrl(again);
  expect(url).toMatch(/^postgres:\/\/duepost/);
  const { stdout, code } = await services('status');
  expect([stdout, code]).toEqual([expect.stringContaining(`running, ${url}`), 1]);

  const other = 'postgres://ada@127.0.0.1:1/ledger';
  const own = await services('up', { DUEPOST_DATABASE_URL: other });
  expect(own.stderr).toContain('using DUEPOST_DATABASE_URL as it is');
  expect(databaseUrl(own)).toBe(other);
});
