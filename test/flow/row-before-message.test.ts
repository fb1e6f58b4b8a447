import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPublisher } from '../../src/broker/publisher.ts';
import { createEventAcceptor } from '../../src/pipeline/accept/events.ts';
import { createAnnouncer } from '../../src/pipeline/announce.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import { type Destination, openDestination, outcomeOf, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';

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

test('what is accepted while the broker is away is kept, and delivered when it is back', async () => {
  const { log, lines } = recordLog();
  proxy.refuse(true);
  const publisher = await connectPublisher(throughPort(product.config.broker, proxy.port), log);
  const announcer = createAnnouncer({ publisher, log, horizonMs: 60_000, feederIntervalMs: 1_000 });
  const acceptor = createEventAcceptor({ db: product.parts.pool, announcer, timeoutMs: 500 });
  const request = {
    idempotencyKey: 'while-away',
    type: 'order.created',
    payload: {},
    endpoint: destination.name,
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: 'test',
  };
  const event = await acceptor.publish(request);
  await announcer.drain();
  const deliveryId = event.deliveries[0]?.delivery_id as string;
  expect(announcer.counters.failed).toBe(1);
  expect(lines.map((line) => line.event)).toContain('announce_failed');
  expect(await outcomeOf(product, deliveryId)).toMatchObject({ state: 'due', attempts: [] });
  expect(await acceptor.publish(request)).toMatchObject({ eventId: event.eventId, duplicate: true });
  await acceptor.close();
  await publisher.close();

  const stop = await product.start(['worker', 'reconciler']);
  const outcome = await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(outcome.auditRecords).toHaveLength(1);
  expect(destination.receiver.effects().map((effect) => effect.calls)).toEqual([1]);
});
