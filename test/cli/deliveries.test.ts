import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { type CliResult, runCli } from '../support/cli.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const NO_BROKER = { DUEPOST_AMQP_URL: 'amqp://127.0.0.1:1' };

let product: TestProduct;
let receiver: PracticeReceiver;

beforeAll(async () => {
  product = await openTestProduct();
  receiver = await startPracticeReceiver();
  await product.endpoints.create(
    { name: 'once', url: receiver.url, policy: { kind: 'schedule', retry_schedule: [0], max_attempts: 1 } },
    { actor: 'test' },
  );
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

function duepost(...args: string[]): Promise<CliResult> {
  return runCli(args, product.env);
}

async function publish(key: string, ...more: string[]): Promise<string> {
  const args = [
    'publish',
    '--type',
    'order.created',
    '--payload',
    '{"n":1.10}',
    '--key',
    key,
    '--contract',
    key,
  ];
  const { json, code } = await duepost(...args, ...more, '--json');
  expect(code).toBe(0);
  return json.deliveries[0].delivery_id;
}

async function isIn(state: string, deliveryId: string): Promise<CliResult['json']> {
  await until(`${deliveryId} to be ${state}`, async () => {
    const { rows } = await product.parts.pool.query('select state from delivery where delivery_id = $1', [
      deliveryId,
    ]);
    return rows[0]?.state === state;
  });
  return (await duepost('deliveries', 'show', deliveryId, '--json')).json;
}

test('an endpoint that is not there is refused as a filter, whatever it looks like', async () => {
  for (const list of ['deliveries', 'dead-letters']) {
    const { code, stderr } = await duepost(list, 'list', '--endpoint', 'ep_typo');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'duepost: not_found: there is no endpoint ep_typo\n',
    });
  }
  // By its id it may be deleted, and its deliveries are there.
  const { code, json } = await duepost(
    'deliveries',
    'list',
    '--endpoint',
    'ep_00000000000000000000000000',
    '--json',
  );
  expect([code, json.data]).toEqual([0, []]);
});

test('publishing with a key twice is one event, with other content it is refused', async () => {
  const deliveryId = await publish('twice', '--deliver-at', '2099-01-01T00:00:00Z');
  expect(await publish('twice', '--deliver-at', '2099-01-01T00:00:00Z')).toBe(deliveryId);
  const { code, stdout, stderr } = await duepost(
    'publish',
    '--type',
    'other',
    '--payload',
    '1',
    '--key',
    'twice',
  );
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('idempotency_key_reused');
});

test('without a broker the event is stored and stderr says so; with one again it is delivered', async () => {
  const args = ['publish', '--type', 'order.created', '--payload', '@-', '--endpoint', 'once', '--json'];
  const refused = await runCli(args, { ...product.env, ...NO_BROKER });
  // Nothing comes from stdin: that is no JSON.
  expect(refused.code).toBe(2);
  const { code, json, stderr } = await runCli(
    args.map((arg) => (arg === '@-' ? '{"n":1}' : arg)),
    { ...product.env, ...NO_BROKER },
  );
  expect(code).toBe(0);
  expect(stderr).toBe(
    'duepost: the broker does not answer: what is stored waits, the reconciler announces it when the broker is back\n',
  );
  const list = await runCli(['endpoint', 'list', '--json'], { ...product.env, ...NO_BROKER });
  expect([list.code, list.stderr]).toEqual([0, '']);
  const config = { ...product.config, reconciler: { intervalMs: 50, graceMs: 0 } };
  const stop = await product.start(['worker', 'reconciler'], config);
  await isIn('delivered', json.deliveries[0].delivery_id);
  await stop();
});

test('what waits can be cancelled and sent again, and the trail says who and why', async () => {
  const deliveryId = await publish('cancelled', '--deliver-at', '2099-01-01T00:00:00Z');
  const listed = await duepost('deliveries', 'list', '--contract', 'cancelled', '--state', 'due', '--json');
  expect(listed.json).toMatchObject({ data: [{ delivery_id: deliveryId }], has_more: false });

  const cancelled = await duepost('deliveries', 'cancel', deliveryId, '--reason', 'by post', '--json');
  expect(cancelled.json).toMatchObject({ delivery_id: deliveryId, state: 'cancelled', attempts: [] });
  const again = await duepost('deliveries', 'cancel', deliveryId);
  expect([again.code, again.stderr.split(':')[1]]).toEqual([1, ' transition_not_allowed']);
  const audit = await duepost('audit', 'show', '--contract', 'cancelled', '--json');
  expect(audit.json.data).toMatchObject([{ delivery_id: deliveryId, cycle: 1, state: 'cancelled' }]);
  expect(audit.json.data[0]?.['actor']).toMatch(/^cli:.+@.+/);

  const retried = await duepost('deliveries', 'retry', deliveryId, '--json');
  expect(retried.json).toMatchObject({ state: 'due', cycle: 2 });
  await duepost('deliveries', 'cancel', deliveryId);
  const { rows } = await product.parts.pool.query(
    "select detail from trail where delivery_id = $1 and event = 'cancel' order by entry",
    [deliveryId],
  );
  expect(JSON.parse(rows[0].detail)).toMatchObject({ reason: 'by post' });
});

test('dead letters are counted first, then replayed with the same key', async () => {
  receiver.reset();
  receiver.setAnswers([500, 500, 200]);
  const stop = await product.start(['worker', 'reconciler']);
  const deliveryIds = [await publish('dead-1'), await publish('dead-2')];
  for (const id of deliveryIds) await isIn('dead_lettered', id);
  const listed = await duepost('dead-letters', 'list', '--json');
  expect(listed.json.data).toMatchObject([
    { dead_reason: 'attempts_exhausted', last_status: 500 },
    { dead_reason: 'attempts_exhausted', last_status: 500 },
  ]);
  expect((await duepost('dead-letters', 'list')).stdout).toContain('attempts_exhausted');

  const counted = await duepost('dead-letters', 'replay', '--endpoint', 'once', '--dry-run', '--json');
  expect(counted.json).toMatchObject({ matched: 2, replayed: 0, dry_run: true });
  const replayed = await duepost(
    'dead-letters',
    'replay',
    '--endpoint',
    'once',
    '--reason',
    'mended',
    '--json',
  );
  expect([replayed.code, replayed.json]).toMatchObject([0, { matched: 2, replayed: 2, complete: true }]);
  for (const id of deliveryIds) expect(await isIn('delivered', id)).toMatchObject({ cycle: 2, attempt: 2 });
  expect(new Set(receiver.calls().map((call) => call.key)).size).toBe(2);
  expect(receiver.effects()).toHaveLength(2);
  await stop();
});
