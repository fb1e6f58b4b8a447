import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startOwnProcess } from '../../src/runtime/own-process.ts';
import { runCli } from '../support/cli.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { type ExampleService, installExample, type Service } from './example-service.ts';
import { OTHER_SECRET, SECRET } from './signed-call.ts';

interface ToCheck {
  readonly idempotency_key: string;
  readonly answers: readonly number[];
  readonly receipts: readonly string[];
}

interface Report {
  readonly ok: boolean;
  readonly drills: readonly {
    readonly name: string;
    readonly error?: string;
    readonly findings: readonly { readonly ok: boolean; readonly what: string }[];
    readonly to_check: readonly ToCheck[];
  }[];
}

let product: TestProduct;
let example: ExampleService;
let service: Service;

beforeAll(async () => {
  [product, example] = await Promise.all([openTestProduct(), installExample([SECRET])]);
  service = await example.start();
});

afterAll(async () => {
  await example.close();
  await product.close();
});

async function drill(url: string, ...args: string[]): Promise<{ code: number | undefined; report: Report }> {
  const run = startOwnProcess(['drill', ...args, '--forward', url, '--json'], product.env);
  const { code } = await run.ended;
  return { code, report: JSON.parse(run.output()) as Report };
}

test("the five drills pass with the example service, by the service's own record", {
  timeout: 180_000,
}, async () => {
  const { code, report } = await drill(service.url, '--secret', SECRET);
  expect(report.drills.flatMap((d) => [d.error, ...d.findings.filter((f) => !f.ok)])).toEqual(
    report.drills.map(() => undefined),
  );
  expect({ code, names: report.drills.map((d) => d.name) }).toEqual({
    code: 0,
    names: ['kill-worker', 'duplicate', 'retry-after', 'unavailable', 'move-renewal'],
  });

  const toCheck = report.drills.flatMap((d) => d.to_check);
  const { rows } = await example.pool.query<{ key: string; receipts: string[] }>(
    `select key, array_agg('notice-' || notice_id) as receipts from notice group by key`,
  );
  expect(rows.toSorted(byKey)).toEqual(
    toCheck.map(({ idempotency_key: key, receipts }) => ({ key, receipts })).toSorted(byKey),
  );
  for (const { receipts } of rows) expect(receipts).toHaveLength(1);

  // It did have the chance to do things twice: whatever the sender was told to have failed had taken effect.
  const most = (name: string): number =>
    Math.max(
      ...(report.drills.find((d) => d.name === name)?.to_check ?? []).map((one) => one.answers.length),
    );
  expect(['retry-after', 'unavailable', 'move-renewal'].map(most)).toEqual([2, 3, 2]);
});

test('a drill fails, and says of what, when the service does not believe its calls', async () => {
  const { code, report } = await drill(service.url, 'unavailable', '--secret', OTHER_SECRET);
  expect(code).toBe(1);
  expect(report.drills[0]?.findings).toContainEqual({
    what: 'answers of the service',
    expected: '2xx',
    seen: '401',
    ok: false,
  });
});

test('a drill finds out a service that does the same thing again', async () => {
  let notices = 0;
  const careless = createServer((_request, response) => {
    notices += 1;
    response.writeHead(202, { 'webhook-receipt': `notice-${notices}` }).end();
  });
  await new Promise<void>((resolve) => careless.listen(0, '127.0.0.1', resolve));
  const { port } = careless.address() as AddressInfo;
  const { code, report } = await drill(`http://127.0.0.1:${port}/`, 'unavailable', '--secret', SECRET);
  careless.close();
  expect(code).toBe(1);
  expect(report.drills[0]?.findings.filter((f) => !f.ok)).toEqual([
    { what: 'receipts that differ', expected: '0', seen: '2', ok: false },
  ]);
  expect(report.drills[0]?.to_check).toMatchObject([
    { answers: [202, 202, 202], receipts: ['notice-1', 'notice-2', 'notice-3'] },
  ]);
});

test('a service without its secret, and a secret that is none, are refused without repeating it', async () => {
  expect((await runCli(['drill', '--forward', service.url], product.env)).code).toBe(2);
  const wrong = await runCli(['drill', '--forward', service.url, '--secret', 'whsec_c2hvcnQ='], product.env);
  expect(wrong.code).not.toBe(0);
  expect(wrong.stdout + wrong.stderr).not.toContain('c2hvcnQ');
});

function byKey(a: { readonly key: string }, b: { readonly key: string }): number {
  return a.key < b.key ? -1 : 1;
}
