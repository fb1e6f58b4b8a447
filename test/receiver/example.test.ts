import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { type ExampleService, installExample } from './example-service.ts';
import { OTHER_SECRET, post, SECRET } from './signed-call.ts';

let example: ExampleService;

beforeAll(async () => {
  example = await installExample([OTHER_SECRET, SECRET]);
});

afterAll(() => example.close());

function reminder(contract: string): string {
  return JSON.stringify({ type: 'renewal.reminder', contract_ref: contract, data: {} });
}

/** Sends until it is accepted, as the sender would; returns the receipt. */
function deliver(url: () => string, contract: string): Promise<string> {
  let attempt = 0;
  return until(`${contract} to be accepted`, async () => {
    attempt += 1;
    const call = { key: `${contract}-reminder`, body: reminder(contract), attempt };
    const response = await post(url(), call).catch(() => undefined);
    if (response?.status === 202) return { receipt: response.headers.get('webhook-receipt') ?? '' };
    if (response !== undefined) expect([409, 500]).toContain(response.status);
    return undefined;
  }).then(({ receipt }) => receipt);
}

describe('the notification service', () => {
  it('installs from the kit alone: no module of the product, no package', async () => {
    const files = (await readdir(join(example.kit, 'dist'), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
      .map((entry) => join(entry.parentPath, entry.name));
    expect(files.map((file) => relative(join(example.kit, 'dist'), file).split('/')[0])).not.toHaveLength(0);
    for (const file of files) {
      expect(relative(join(example.kit, 'dist'), file)).toMatch(/^(receiver|domain)\//);
      const imports = [...(await readFile(file, 'utf8')).matchAll(/from '([^']+)'/g)].map(([, name]) => name);
      for (const name of imports) expect(name).toMatch(/^(\.{1,2}\/|node:)/);
    }
  });

  it('has one notice per reminder although it is killed again and again under load', async () => {
    let service = await example.start();
    const { port } = service;
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
          await service.kill('SIGKILL');
          service = await example.start(port);
        }
      }
    }
    await Promise.all(Array.from({ length: 16 }, work));
    expect(kills).toBe(6);

    const { rows } = await example.pool.query<{ contract_ref: string; receipts: string[] }>(
      `select contract_ref, array_agg('notice-' || notice_id) as receipts from notice group by 1`,
    );
    const noticed = new Map(rows.map((row) => [row.contract_ref, row.receipts]));
    expect([...noticed.keys()].toSorted()).toEqual(contracts.toSorted());
    for (const contract of contracts) expect(noticed.get(contract)).toEqual([receipts.get(contract)]);

    const again = await deliver(() => service.url, 'pol-7');
    expect(again).toBe(receipts.get('pol-7'));
    await expect
      .poll(async () => (await example.pool.query('select 1 from notice where sent_at is null')).rows, {
        timeout: 20_000,
      })
      .toEqual([]);
    expect(await service.kill('SIGTERM')).toBe(0);
  });

  it('shares the work with a second instance, and neither repeats it', async () => {
    const services = [await example.start(), await example.start()];
    const contracts = Array.from({ length: 40 }, (_, n) => `shared-${n}`);
    const receipts = await Promise.all(
      services.map(({ url }) => Promise.all(contracts.map((contract) => deliver(() => url, contract)))),
    );
    expect(receipts[0]).toEqual(receipts[1]);
    const { rows } = await example.pool.query(`select 1 from notice where contract_ref like 'shared-%'`);
    expect(rows).toHaveLength(contracts.length);
    for (const service of services) expect(await service.kill('SIGTERM')).toBe(0);
  });
});
