import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import type { Role } from '../../src/roles/role.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import {
  type Destination,
  drainQueue,
  forge,
  inMs,
  openDestination,
  publishTo,
  purgeEverything,
  QUICK,
  takeMessage,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

/** What a broker short of memory says to whoever publishes: connection.blocked (class 10, method 60) and unblocked. */
const BLOCKED = frameOf([0, 10, 0, 60, 3, ...Buffer.from('low')]);
const UNBLOCKED = frameOf([0, 10, 0, 61]);

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

function frameOf(method: readonly number[]): Buffer {
  return Buffer.from([1, 0, 0, 0, 0, 0, method.length, ...method, 0xce]);
}

/** Starts a role that may take and not publish. */
async function startBlocked(role: Role): Promise<() => Promise<void>> {
  const { broker } = product.config;
  product.recorded.lines.length = 0;
  const stop = await product.start([role], {
    ...product.config,
    broker: { ...broker, url: throughPort(broker, proxy.port).url },
  });
  proxy.say(BLOCKED, `${broker.prefix} publisher`);
  await until('the alarm', () => product.recorded.lines.some(({ event }) => event === 'broker.blocked'));
  return stop;
}

/** Waits until the broker has been asked about again and again, as rounds of giving back would be counted. */
async function faultIsWaitedOut(): Promise<void> {
  await until('the fault', () => product.recorded.lines.some(({ event }) => event === 'consumer.fault'));
  const since = Date.now();
  // Without waiting, the first rounds come within a tenth, two, four and eight tenths of a second.
  await until('rounds', () => Date.now() - since > 2_000);
}

test('a wake-up that is too early waits for the end of an alarm, uncounted', async () => {
  const { deliveryId } = await publishTo(product, destination, { deliverAt: inMs(600_000) });
  await product.parts.announcer.drain();
  await purgeEverything(product);
  const stop = await startBlocked('worker');
  await forge(product, { v: 1, delivery_id: deliveryId, attempt: 1 });
  await faultIsWaitedOut();
  await stop();
  const message = await takeMessage(product, namesOf(product.config.broker.prefix).deliveries);
  // Given back once, by the end of the connection.
  expect(message.properties.headers?.['x-delivery-count']).toBe(1);
});

test('a command that is refused waits for the end of an alarm, and is then set aside with its reason', async () => {
  const { commands, commandsRejected, commandsQueue } = namesOf(product.config.broker.prefix);
  const stop = await startBlocked('ingress');
  await product.parts.publisher.publish({
    exchange: commands,
    routingKey: 'no.such',
    body: Buffer.from('{}'),
  });
  await faultIsWaitedOut();
  expect(await drainQueue(product, commandsRejected)).toEqual([]);
  proxy.say(UNBLOCKED, `${product.config.broker.prefix} publisher`);
  const message = await takeMessage(product, commandsRejected);
  expect(message.properties.headers?.['x-duepost-error']).toMatch(/^unsupported_command: /);
  await stop();
  expect(await drainQueue(product, commandsQueue)).toEqual([]);
});
