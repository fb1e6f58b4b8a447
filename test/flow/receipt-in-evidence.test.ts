import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type Destination, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { faultsOfPage } from '../support/html.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  destination = await openDestination(product, { answers: [503, 200] });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

interface Bundle {
  readonly deliveries: readonly { readonly trail: readonly { event: string; detail: string }[] }[];
}

test("the receiver's receipt is kept with the attempt that got it, and the exported evidence shows it", async () => {
  const { deliveryId } = await publishTo(product, destination, { contractRef: 'pol-7781' });
  await reaches(product, deliveryId, 'delivered');

  const { rows } = await product.parts.pool.query<{ event: string; receipt: string | null }>(
    `select event, detail::jsonb #>> '{response_headers,webhook-receipt}' as receipt
       from trail
      where delivery_id = $1 and event in ('retry', 'deliver')
      order by entry`,
    [deliveryId],
  );
  expect(rows).toEqual([
    { event: 'retry', receipt: null },
    { event: 'deliver', receipt: 'practice-1' },
  ]);

  const exported = await runCli(['audit', 'export', '--contract', 'pol-7781'], product.env);
  expect(exported.code).toBe(0);
  const [delivery] = (JSON.parse(exported.stdout) as Bundle).deliveries;
  const receipts = (delivery?.trail ?? []).flatMap(({ event, detail }) => {
    const sent = JSON.parse(detail) as { response_headers?: Readonly<Record<string, string>> };
    const receipt = sent.response_headers?.['webhook-receipt'];
    return receipt === undefined ? [] : [{ event, receipt }];
  });
  expect(receipts).toEqual([{ event: 'deliver', receipt: 'practice-1' }]);

  const folder = mkdtempSync(join(tmpdir(), 'duepost-'));
  const file = join(folder, 'page.html');
  expect(
    (await runCli(['audit', 'export', '--contract', 'pol-7781', '--html', file], product.env)).code,
  ).toBe(0);
  const page = readFileSync(file, 'utf8');
  rmSync(folder, { recursive: true });
  expect(page).toContain('the receiver answered 200 and gave the receipt practice-1');
  expect(page).toContain('<td>practice-1</td>');
  expect(faultsOfPage(page)).toEqual([]);
});
