import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../../src/runtime/build-info.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';
import type { Chance } from './chance.ts';

/** A process of the product that is started again however it ends, with proxies of its own to both servers. */
export interface Member {
  readonly name: string;
  readonly roles: string;
  readonly database: Proxy;
  readonly broker: Proxy;
  /** SIGKILL. */
  kill(): void;
  /** SIGTERM, and a new start with these variables; resolves when it has started. */
  restart(variables?: Readonly<Record<string, string>>): Promise<void>;
}

export interface Fleet {
  readonly members: readonly Member[];
  /** What no fault explains: processes that crashed, or did not stop in order when nothing was wrong. */
  readonly crashes: readonly string[];
  readonly starts: () => number;
  stop(): Promise<void>;
}

/** Where a server listens; read at every connection, so that it may move. */
export interface Target {
  targetHost: string;
  targetPort: number;
}

export interface FleetOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly roles: readonly string[];
  readonly targets: { readonly database: Target; readonly broker: Target };
  readonly chance: Chance;
}

const KEPT_LINES = 12;
const READY_WITHIN_MS = 60_000;
const FORCED_AFTER_MS = 20_000;

/** Starts one process per entry of `roles`. */
export async function startFleet({ env, roles, targets, chance }: FleetOptions): Promise<Fleet> {
  const crashes: string[] = [];
  let starts = 0;
  let isOver = false;
  const members = await Promise.all(roles.map((of, n) => openMember(`${of}-${n}`, of)));

  async function openMember(name: string, of: string) {
    const database = await startProxy(targets.database);
    const broker = await startProxy(targets.broker);
    const own = chance.fork();
    const variables = {
      ...env,
      DUEPOST_DATABASE_URL: throughPort(env['DUEPOST_DATABASE_URL'], database.port),
      DUEPOST_AMQP_URL: throughPort(env['DUEPOST_AMQP_URL'], broker.port),
    };
    let child: ChildProcess | undefined;
    let isExpected = false;
    let next: Readonly<Record<string, string>> = {};
    let whenReady: (() => void)[] = [];

    function run(): Promise<void> {
      const started = { ...variables, ...next };
      next = {};
      starts += 1;
      const args = [join(packageRoot, 'dist/main.js'), 'start', '--roles', of];
      const running = spawn(process.execPath, args, {
        env: { ...process.env, ...started },
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      });
      child = running;
      let isReady = false;
      const lines: string[] = [];
      createInterface({ input: running.stderr as NodeJS.ReadableStream }).on('line', (line) => {
        lines.push(line);
        if (lines.length > KEPT_LINES) lines.shift();
        if (!/"event":"started"/.test(line)) return;
        isReady = true;
        for (const resolve of whenReady.splice(0)) resolve();
      });
      return new Promise((resolve) => {
        running.once('close', (code, signal) => {
          const isKilled = signal === 'SIGKILL';
          // One that could not start, because a server is away, says so and is tried again.
          if (isReady && !isKilled && !(isExpected && (code === 0 || code === 1)))
            crashes.push(`${name} ended with ${code ?? signal}:\n  ${lines.join('\n  ')}`);
          isExpected = false;
          resolve();
        });
      });
    }

    const living = (async () => {
      while (!isOver) {
        await run();
        await sleep(own.whole(0, 500));
      }
    })();
    const ready = (): Promise<unknown> =>
      Promise.race([
        new Promise<void>((resolve) => whenReady.push(resolve)),
        sleep(READY_WITHIN_MS, undefined, { ref: false }),
      ]);
    await ready();

    return {
      name,
      roles: of,
      database,
      broker,
      kill: () => void child?.kill('SIGKILL'),
      async restart(changes: Readonly<Record<string, string>> = {}) {
        next = changes;
        isExpected = true;
        const forced = setTimeout(() => child?.kill('SIGKILL'), FORCED_AFTER_MS);
        const started = ready();
        child?.kill('SIGTERM');
        await started;
        clearTimeout(forced);
      },
      async end() {
        whenReady = [];
        isExpected = true;
        const forced = setTimeout(() => {
          crashes.push(`${name} did not stop within ${FORCED_AFTER_MS / 1_000} s`);
          child?.kill('SIGKILL');
        }, FORCED_AFTER_MS);
        child?.kill('SIGTERM');
        await living;
        clearTimeout(forced);
        await Promise.all([database.close(), broker.close()]);
      },
    };
  }

  return {
    members,
    crashes,
    starts: () => starts,
    async stop() {
      isOver = true;
      await Promise.all(members.map((member) => member.end()));
    },
  };
}

export function throughPort(url: string | undefined, port: number): string {
  const through = new URL(url ?? '');
  through.hostname = '127.0.0.1';
  through.port = String(port);
  return through.href;
}
