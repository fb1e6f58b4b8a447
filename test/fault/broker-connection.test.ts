import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPublisher } from '../../src/broker/publisher.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import {
  type Destination,
  openDestination,
  publishTo,
  purgeEverything,
  QUICK,
  reaches,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';

/** The method by which a channel is closed, as AMQP 0-9-1 numbers it: class 20, method 40. */
const CLOSE_OF_CHANNEL = Buffer.from([0, 20, 0, 40]);
let product: TestProduct;
let destination: Destination;
let proxy: Proxy;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
  proxy = await startProxy(targetOf(product.config.broker));
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
  await proxy.close();
});

test('counting what waits ends, even when the connection dies as the answer is in hand', async () => {
  const { log } = recordLog();
  const publisher = await connectPublisher(throughPort(product.config.broker, proxy.port), log);
  const queue = namesOf(product.config.broker.prefix).deliveries;
  const cut = proxy.cutWhen(CLOSE_OF_CHANNEL, { deliver: false });
  expect(await publisher.countReady(queue)).toBe(0);
  await cut;
  await until('a new connection', () => publisher.isReady());
  expect(await publisher.countReady(queue)).toBe(0);
  await publisher.close();
});

test('a reconciler whose connection died in the middle of a pass finds what is lost all the same', async () => {
  const { broker } = product.config;
  const config = { ...product.config, broker: { ...broker, url: throughPort(broker, proxy.port).url } };
  const stops = [await product.start(['reconciler'], config)];
  await Promise.all([1, 2, 3].map(() => proxy.cutWhen(CLOSE_OF_CHANNEL, { deliver: false })));
  const { deliveryId } = await publishTo(product, destination);
  await product.parts.announcer.drain();
  await purgeEverything(product);
  stops.push(await product.start(['worker']));
  await reaches(product, deliveryId, 'delivered');
  await Promise.all(stops.map((stop) => stop()));
});
