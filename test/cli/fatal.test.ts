import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const TIMES = 3;

/** Makes the process throw where nobody catches, once it has begun to open a connection. */
const PLANTED_BUG = `--import=data:text/javascript,${encodeURIComponent(
  "import net from 'node:net'; const connect = net.Socket.prototype.connect; net.Socket.prototype.connect = function (...args) { setImmediate(() => { throw new Error('planted bug'); }); return connect.apply(this, args); };",
)}`;

let empty: TestDatabase;
let folder: string;

beforeAll(async () => {
  empty = await openTestDatabase({ migrated: false });
  folder = mkdtempSync(join(tmpdir(), 'fatal-'));
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await empty.close();
});

const SERVERS = (): Record<string, string> => ({
  DUEPOST_ENV: 'test',
  DUEPOST_DATABASE_URL: empty.url,
  DUEPOST_AMQP_URL: process.env['DUEPOST_AMQP_URL'] ?? '',
  DUEPOST_HTTP_PORT: '0',
});

const FAULTS: [string, Record<string, string>, string][] = [
  ['a bad configuration', { DUEPOST_WORKER_PREFETCH: '-1' }, 'DUEPOST_WORKER_PREFETCH'],
  [
    'a database that is not there',
    { DUEPOST_DATABASE_URL: 'postgres://127.0.0.1:1/x' },
    'ECONNREFUSED 127.0.0.1:1',
  ],
  ['pending migrations', {}, 'run duepost migrate'],
  ['a bug', { NODE_OPTIONS: PLANTED_BUG }, 'planted bug'],
];

test('a port that is taken is the only thing a start says, before it looks at either server', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const { code, stderr } = await runCli(['start'], {
    ...SERVERS(),
    DUEPOST_HTTP_PORT: String(port),
    DUEPOST_DATABASE_URL: 'postgres://127.0.0.1:1/x',
  });
  taken.close();
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `duepost: port ${port} of 127.0.0.1 is taken already: set DUEPOST_HTTP_PORT to another, or to 0 for any that is free\n`,
  });
});

describe.each(FAULTS)('%s', (_, changes, reason) => {
  test(`ends the start with its reason on stderr every time, into a pipe`, async () => {
    for (let i = 0; i < TIMES; i += 1) {
      const { code, stdout, stderr } = await runCli(['start'], { ...SERVERS(), ...changes });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(reason);
    }
  });

  test(`ends the start with its reason on stderr every time, into a file`, async () => {
    for (let i = 0; i < TIMES; i += 1) {
      const { code, text } = await startIntoFile({ ...SERVERS(), ...changes });
      expect(code).toBe(1);
      expect(text).toContain(reason);
    }
  });
});

function startIntoFile(env: Record<string, string>): Promise<{ code: number | null; text: string }> {
  const path = join(folder, 'log');
  const file = openSync(path, 'w');
  const child = spawn(process.execPath, [MAIN, 'start'], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, text: readFileSync(path, 'utf8') }));
  });
}

test('a start that fails ends the process, also where it was started as a part of another one', async () => {
  const child = fork(MAIN, ['start'], {
    env: { ...process.env, ...SERVERS(), DUEPOST_DATABASE_URL: 'postgres://127.0.0.1:1/x' },
    silent: true,
  });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  expect(code).toBe(1);
});
