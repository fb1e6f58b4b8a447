import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { type Destination, inMs, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('wake-ups that fall due while their queue is gone are seen elsewhere, and sent once it is back', async () => {
  const { deliveries: queue, unrouted } = namesOf(product.config.broker.prefix);
  const events = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      publishTo(product, destination, { deliverAt: inMs(2_000 + i * 10) }),
    ),
  );
  await product.parts.announcer.drain();
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(queue);
  });
  const stop = await product.start(['worker', 'reconciler']);
  await until(
    'the dead letters',
    async () => ((await product.parts.publisher.countReady(unrouted)) ?? 0) >= 20,
  );
  expect(destination.receiver.calls()).toEqual([]);
  await applyTopology(product.config.broker, product.recorded.log);

  for (const { deliveryId } of events) await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(destination.receiver.effects().map((effect) => effect.calls)).toEqual(events.map(() => 1));
});
