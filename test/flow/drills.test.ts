import { afterAll, beforeAll, expect, test } from 'vitest';
import { startOwnProcess } from '../../src/runtime/own-process.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

async function drill(...args: string[]) {
  const run = startOwnProcess(['drill', ...args, '--json'], product.env);
  const { code } = await run.ended;
  return { code, report: JSON.parse(run.output()) };
}

test('the five drills end as expected on a stack where nothing runs', { timeout: 180_000 }, async () => {
  const { code, report } = await drill();
  const unexpected = report.drills.flatMap((d: { error?: string; findings: { ok: boolean }[] }) => [
    ...(d.error === undefined ? [] : [d.error]),
    ...d.findings.filter((finding) => !finding.ok),
  ]);
  expect(unexpected).toEqual([]);
  expect({ code, ok: report.ok, names: report.drills.map((d: { name: string }) => d.name) }).toEqual({
    code: 0,
    ok: true,
    names: ['kill-worker', 'duplicate', 'retry-after', 'unavailable', 'move-renewal'],
  });
});

test('the worker is killed with a delivery in its hands although others take their turns', async () => {
  const stops = await Promise.all([1, 2].map(() => product.start(['worker', 'reconciler'])));
  const { code, report } = await drill('kill-worker');
  await Promise.all(stops.map((stop) => stop()));
  expect({ code, findings: report.drills[0].findings }).toMatchObject({
    code: 0,
    findings: expect.arrayContaining([
      { what: 'worker ended by', expected: 'SIGKILL', seen: 'SIGKILL', ok: true },
      { what: 'business effects at the receiver', expected: '1', seen: '1', ok: true },
    ]),
  });
});

test('a drill leaves no endpoint behind', async () => {
  const { rows } = await product.parts.pool.query('select name from endpoint where deleted_at is null');
  expect(rows).toEqual([]);
});
