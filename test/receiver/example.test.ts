import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { OTHER_SECRET, post, SECRET } from './signed-call.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

let folder: string;
let installed: string;
let database: TestDatabase;
const running = new Set<ChildProcess>();

/** Installs the kit the way a consumer gets it: compiled, with nothing of the product beside it. */
beforeAll(async () => {
  database = await createTestDatabase('example');
  folder = await mkdtemp(join(tmpdir(), 'notification-service-'));
  installed = join(folder, 'node_modules/duepost');
  await cp(join(REPOSITORY, 'examples/notification-service'), folder, { recursive: true });
  await mkdir(installed, { recursive: true });
  await cp(join(REPOSITORY, 'package.json'), join(installed, 'package.json'));
  await symlink(join(REPOSITORY, 'node_modules/pg'), join(folder, 'node_modules/pg'));
  const config = join(installed, 'tsconfig.json');
  await writeFile(
    config,
    JSON.stringify({
      extends: join(REPOSITORY, 'tsconfig.build.json'),
      compilerOptions: {
        rootDir: join(REPOSITORY, 'src'),
        outDir: join(installed, 'dist'),
        typeRoots: [join(REPOSITORY, 'node_modules/@types')],
      },
      files: [join(REPOSITORY, 'src/receiver/index.ts')],
      include: [],
    }),
  );
  execFileSync(join(REPOSITORY, 'node_modules/.bin/tsc'), ['-p', config]);
});

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

interface Service {
  readonly url: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
}

async function startService(port = '0'): Promise<Service> {
  const child = spawn(process.execPath, ['server.mjs'], {
    cwd: folder,
    env: { DATABASE_URL: database.url, WEBHOOK_SECRETS: `${OTHER_SECRET} ${SECRET}`, PORT: port },
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
  return { url, child, exited };
}

async function kill(service: Service, signal: NodeJS.Signals): Promise<number | null> {
  service.child.kill(signal);
  const code = await service.exited;
  running.delete(service.child);
  return code;
}

function reminder(contract: string): string {
  return JSON.stringify({ type: 'renewal.reminder', contract_ref: contract, data: {} });
}

/** Sends until it is accepted, as the sender would; returns the receipt. */
async function deliver(url: () => string, contract: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const call = { key: `${contract}-reminder`, body: reminder(contract), attempt };
    const response = await post(url(), call).catch(() => undefined);
    if (response?.status === 202) return response.headers.get('webhook-receipt') ?? '';
    if (response !== undefined) expect([409, 500]).toContain(response.status);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('the notification service', () => {
  it('installs from the kit alone: no module of the product, no package', async () => {
    const files = (await readdir(join(installed, 'dist'), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
      .map((entry) => join(entry.parentPath, entry.name));
    expect(files.map((file) => relative(join(installed, 'dist'), file).split('/')[0])).not.toHaveLength(0);
    for (const file of files) {
      expect(relative(join(installed, 'dist'), file)).toMatch(/^(receiver|domain)\//);
      const imports = [...(await readFile(file, 'utf8')).matchAll(/from '([^']+)'/g)].map(([, name]) => name);
      for (const name of imports) expect(name).toMatch(/^(\.{1,2}\/|node:)/);
    }
  });

  it('has one notice per reminder although it is killed again and again under load', async () => {
    let service = await startService();
    const port = new URL(service.url).port;
    const contracts = Array.from({ length: 240 }, (_, n) => `pol-${n}`);
    const receipts = new Map<string, string>();
    const waiting = [...contracts];
    let kills = 0;

    async function work(): Promise<void> {
      for (let contract = waiting.pop(); contract !== undefined; contract = waiting.pop()) {
        receipts.set(contract, await deliver(() => service.url, contract));
        // Sixteen calls are at work, so this cuts fifteen somewhere on their way.
        if (receipts.size >= (kills + 1) * 30 && kills < 6) {
          kills += 1;
          await kill(service, 'SIGKILL');
          service = await startService(port);
        }
      }
    }
    await Promise.all(Array.from({ length: 16 }, work));
    expect(kills).toBe(6);

    const { rows } = await database.pool.query<{ contract_ref: string; receipts: string[] }>(
      `select contract_ref, array_agg('notice-' || notice_id) as receipts from notice group by 1`,
    );
    const noticed = new Map(rows.map((row) => [row.contract_ref, row.receipts]));
    expect([...noticed.keys()].toSorted()).toEqual(contracts.toSorted());
    for (const contract of contracts) expect(noticed.get(contract)).toEqual([receipts.get(contract)]);

    const again = await deliver(() => service.url, 'pol-7');
    expect(again).toBe(receipts.get('pol-7'));
    await expect
      .poll(async () => (await database.pool.query('select 1 from notice where sent_at is null')).rows, {
        timeout: 20_000,
      })
      .toEqual([]);
    expect(await kill(service, 'SIGTERM')).toBe(0);
  });

  it('shares the work with a second instance, and neither repeats it', async () => {
    const services = [await startService(), await startService()];
    const contracts = Array.from({ length: 40 }, (_, n) => `shared-${n}`);
    const receipts = await Promise.all(
      services.map(({ url }) => Promise.all(contracts.map((contract) => deliver(() => url, contract)))),
    );
    expect(receipts[0]).toEqual(receipts[1]);
    const { rows } = await database.pool.query(`select 1 from notice where contract_ref like 'shared-%'`);
    expect(rows).toHaveLength(contracts.length);
    for (const service of services) expect(await kill(service, 'SIGTERM')).toBe(0);
  });
});
