import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPracticeReceiver } from '../../src/receiver/practice.ts';
import { type CliResult, runCli } from '../support/cli.ts';
import { publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

const SECRETS = /SECRETPATH|SECRETQ/;
let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
});

afterAll(() => product.close());

/** Fails one delivery for good at `<origin>/T0/SECRETPATH?token=SECRETQ`. */
async function failAt(name: string, origin: string): Promise<string> {
  const url = `${origin}/T0/SECRETPATH?token=SECRETQ`;
  const policy = { kind: 'schedule', retry_schedule: [0], max_attempts: 1 };
  await product.endpoints.create({ name, url, policy }, { actor: 'test' });
  const { deliveryId } = await publishTo(product, { name });
  await reaches(product, deliveryId, 'dead_lettered');
  return deliveryId;
}

function textOf({ stdout, stderr }: CliResult): string {
  return stdout + stderr;
}

test('however a call fails, the path and query of its endpoint are in no error, log, metric or list', async () => {
  const failing = await startPracticeReceiver({ answers: [500] });
  const closed = await startPracticeReceiver();
  await closed.close();
  const failed = [
    await failAt('answers-500', `http://127.0.0.1:${failing.port}`),
    await failAt('refuses', `http://127.0.0.1:${closed.port}`),
    await failAt('no-name', 'http://no-such-host.invalid'),
    await failAt('no-tls', `https://127.0.0.1:${failing.port}`),
  ];
  await failing.close();

  const { rows } = await product.parts.pool.query<{ error: string | null }>(
    'select error, detail, response_excerpt from attempt where delivery_id = any($1) order by delivery_id',
    [failed],
  );
  expect(rows.map(({ error }) => error?.split(':')[0])).toEqual([
    undefined,
    'connect_refused',
    'dns_failure',
    'tls_failure',
  ]);
  const at = product.recorded.lines.find(({ event }) => event === 'http_listening')?.fields['url'] as string;
  const metrics = await (await fetch(`${at}/metrics`)).text();
  const list = await runCli(['dead-letters', 'list'], product.env);
  expect(list.stdout).toContain(failed[0]);
  const refused = await runCli(
    ['endpoint', 'create', '--name', 'bad', '--url', 'ftp://h/SECRETPATH?token=SECRETQ'],
    product.env,
  );
  expect(refused.code).toBe(1);
  for (const shown of [
    JSON.stringify([rows, product.recorded.lines]),
    metrics,
    textOf(list),
    textOf(refused),
  ]) {
    expect(shown).not.toMatch(SECRETS);
  }
});
