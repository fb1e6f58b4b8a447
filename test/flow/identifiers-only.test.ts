import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { topologyOf } from '../../src/broker/topology.ts';
import { drainQueue, inMs, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { dueNow } from '../support/reminders.ts';

const CANARY = 'canary-5d41402abc4b';
let product: TestProduct;
let copies: string;

/** A queue that gets a copy of whatever passes any exchange of the product. */
async function copyEverything(): Promise<void> {
  const topology = topologyOf(product.config.broker.prefix);
  copies = `${product.config.broker.prefix}.copies`;
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.assertQueue(copies, { durable: true });
    for (const { name, type } of topology.exchanges) {
      const keys = new Set(topology.bindings.filter((b) => b.source === name).map((b) => b.routingKey));
      for (const key of type === 'topic' ? ['#'] : keys) await channel.bindQueue(copies, name, key);
    }
  });
}

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  await copyEverything();
});

afterAll(async () => {
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(copies);
  });
  await product.close();
});

test('nothing but identifiers is ever seen at the broker', async () => {
  const good = await openDestination(product, { answers: [503, 200] });
  const gone = await openDestination(product, { answers: [410] });
  const payload = { secret: CANARY };
  const delivered = await publishTo(product, good, { payload, deliverAt: inMs(1_200), contractRef: 'pol-1' });
  const dead = await publishTo(product, gone, { payload });
  const { reminder } = await product.reminders.schedule(dueNow({ endpoint: good.name, payload }));
  for (const id of [delivered.deliveryId, reminder.deliveryId]) await reaches(product, id, 'delivered');
  await reaches(product, dead.deliveryId, 'dead_lettered');

  const bodies: string[] = [];
  const events = new Set<string>();
  while (!events.has('endpoint.disabled') || !events.has('delivery.dead_lettered')) {
    for (const { content, properties } of await drainQueue(product, copies)) {
      const { event, ...message } = JSON.parse(content.toString());
      if (event !== undefined) events.add(event);
      bodies.push(JSON.stringify(properties), content.toString());
      expect(['delivery_id', 'contract_ref', 'attempt', 'dead_reason', 'endpoint_id', 'v']).toEqual(
        expect.arrayContaining(Object.keys(message)),
      );
    }
  }
  expect(bodies.length).toBeGreaterThan(8);
  const seen = bodies.join('\n');
  for (const forbidden of [
    CANARY,
    good.receiver.url,
    gone.receiver.url,
    good.secret,
    gone.secret,
    'http://',
  ]) {
    expect(seen).not.toContain(forbidden);
  }
  await Promise.all([good.receiver.close(), gone.receiver.close()]);
});
