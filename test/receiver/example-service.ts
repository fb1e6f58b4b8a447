import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { createTestDatabase } from './database.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

/** One process of the example. */
export interface Service {
  readonly url: string;
  readonly port: string;
  /** Ends it; the exit code, or null when a signal ended it. */
  kill(signal: NodeJS.Signals): Promise<number | null>;
}

/** `examples/notification-service` with a database of its own. */
export interface ExampleService {
  /** Where the kit lies that it uses: compiled, with nothing of the product beside it. */
  readonly kit: string;
  readonly pool: pg.Pool;
  /** @param port  the same one again after a kill; undefined: any */
  start(port?: string): Promise<Service>;
  /** Kills what still runs and removes everything. */
  close(): Promise<void>;
}

/** Installs the example the way a consumer does. */
export async function installExample(secrets: readonly string[]): Promise<ExampleService> {
  const database = await createTestDatabase('example');
  const folder = await mkdtemp(join(tmpdir(), 'notification-service-'));
  const kit = join(folder, 'node_modules/duepost');
  await cp(join(REPOSITORY, 'examples/notification-service'), folder, { recursive: true });
  await mkdir(kit, { recursive: true });
  await cp(join(REPOSITORY, 'package.json'), join(kit, 'package.json'));
  await symlink(join(REPOSITORY, 'node_modules/pg'), join(folder, 'node_modules/pg'));
  await compileKit(kit);
  const running = new Set<ChildProcess>();

  return {
    kit,
    pool: database.pool,
    async start(port = '0') {
      const child = spawn(process.execPath, ['server.mjs'], {
        cwd: folder,
        env: { DATABASE_URL: database.url, WEBHOOK_SECRETS: secrets.join(' '), PORT: port },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      running.add(child);
      const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
      const url = await new Promise<string>((resolve, reject) => {
        createInterface({ input: child.stdout }).on('line', (line) => {
          const listening = /^listening on (\S+)$/.exec(line)?.[1];
          if (listening !== undefined) resolve(listening);
        });
        void exited.then(() => reject(new Error('the service ended before it listened')));
      });
      return {
        url,
        port: new URL(url).port,
        async kill(signal) {
          child.kill(signal);
          const code = await exited;
          running.delete(child);
          return code;
        },
      };
    },
    async close() {
      for (const child of running) child.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
      await database.drop();
    },
  };
}

async function compileKit(kit: string): Promise<void> {
  const config = join(kit, 'tsconfig.json');
  await writeFile(
    config,
    JSON.stringify({
      extends: join(REPOSITORY, 'tsconfig.build.json'),
      compilerOptions: {
        rootDir: join(REPOSITORY, 'src'),
        outDir: join(kit, 'dist'),
        typeRoots: [join(REPOSITORY, 'node_modules/@types')],
      },
      files: [join(REPOSITORY, 'src/receiver/index.ts')],
      include: [],
    }),
  );
  execFileSync(join(REPOSITORY, 'node_modules/.bin/tsc'), ['-p', config]);
}
