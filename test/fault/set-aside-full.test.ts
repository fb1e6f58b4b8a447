import { afterAll, beforeAll, expect, test } from 'vitest';
import { createManagement } from '../../src/broker/management.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { openAmqpClient } from '../support/amqp-client.ts';
import { forge } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;

/** Leaves room for one message in a queue, until the result is called. */
async function narrow(queue: string): Promise<() => Promise<void>> {
  const management = createManagement(product.config.broker);
  const name = `${queue}-narrow`;
  await management?.putPolicy(name, {
    pattern: `^${queue.replaceAll('.', '\\.')}$`,
    definition: { 'max-length': 1 },
    'apply-to': 'queues',
    priority: 10,
  });
  return async () => management?.deletePolicy(name);
}

async function readiness(): Promise<{ status: number; checks: Record<string, string> }> {
  const line = product.recorded.lines.findLast(({ event }) => event === 'http_listening');
  const response = await fetch(`${String(line?.fields['url'])}/readyz`);
  const { checks } = (await response.json()) as { checks: Record<string, string> };
  return { status: response.status, checks };
}

beforeAll(async () => {
  product = await openTestProduct({ env: { DUEPOST_WORKER_PREFETCH: '2' } });
});

afterAll(() => product.close());

test('a good command is taken behind a thousand bad ones that find no room', async () => {
  const widen = await narrow(namesOf(product.config.broker.prefix).commandsRejected);
  const stop = await product.start(['ingress']);
  const client = await openAmqpClient(product);
  const bad = Buffer.from('{');
  const parked = (): number =>
    product.recorded.lines.filter(({ event }) => event === 'consumer.parked').length;
  await until('the queue to be full', async () => {
    await client.send('event.publish', bad);
    return parked() > 0;
  });
  await Promise.all(Array.from({ length: 1_200 }, () => client.send('event.publish', bad)));
  const event = { v: 1, type: 'order.created', payload: {} };
  const good = Buffer.from(JSON.stringify(event));
  expect(await client.call('event.publish', good, { messageId: 'ord_1' })).toMatchObject({ ok: true });
  expect((await readiness()).status).toBe(200);
  await widen();
  await client.close();
  await stop();
});

test('a worker that takes nothing more, for all it has taken finds no room, says where room is to be made', async () => {
  const { poison, deliveries } = namesOf(product.config.broker.prefix);
  const widen = await narrow(poison);
  const stop = await product.start(['worker']);
  await Promise.all(Array.from({ length: 100 }, () => forge(product, 'no wake-up')));
  const reason = `takes nothing from ${deliveries}: what it has taken waits for room in ${poison}`;
  await until('the worker to say so', async () => (await readiness()).checks['worker'] === reason);
  await widen();
  await until('all to be set aside', async () => (await readiness()).status === 200);
  await stop();
});
