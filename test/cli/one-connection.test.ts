import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let folder: string;
let env: Record<string, string>;

beforeAll(async () => {
  product = await openTestProduct();
  folder = mkdtempSync(join(tmpdir(), 'one-connection-'));
  await runCli(['audit', 'keygen', '--out', join(folder, 'sealing')]);
  env = {
    ...product.env,
    DUEPOST_SEALING_KEY_FILE: join(folder, 'sealing.pem'),
    DUEPOST_DATABASE_POOL_SIZE: '1',
    DUEPOST_DATABASE_STATEMENT_TIMEOUT_MS: '1000',
  };
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await product.close();
});

test('one connection for statements is enough for the commands that hold a lock', async () => {
  await product.endpoints.create({ name: 'sink', url: 'https://sink.example/' }, { actor: 'test' });
  const sealed = await runCli(['audit', 'seal', '--json'], env);
  expect(sealed.json).toMatchObject({ busy: false, sealed: [{ seal: { number: 1 } }] });
  expect(await runCli(['audit', 'retain', '--json'], env)).toMatchObject({ code: 0, json: { busy: false } });
});
