import { afterAll, beforeAll, expect, test } from 'vitest';
import { openConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { type Destination, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;
let heard: { readonly routingKey: string; readonly body: unknown }[];
let close: () => Promise<void>;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  const connection = await openConnection(product.config.broker, 'another service');
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, namesOf(product.config.broker.prefix).notifications, '#');
  heard = [];
  await channel.consume(
    queue,
    (message) => {
      if (message !== null) {
        heard.push({ routingKey: message.fields.routingKey, body: JSON.parse(message.content.toString()) });
      }
    },
    { noAck: true },
  );
  close = () => connection.close();
});

afterAll(async () => {
  await close();
  await destination.receiver.close();
  await product.close();
});

function about(deliveryId: string): unknown[] {
  return heard.filter(({ body }) => (body as { delivery_id?: string }).delivery_id === deliveryId);
}

test('tells other services what was delivered, with identifiers only', async () => {
  destination = await openDestination(product, { answers: [200] });
  const { deliveryId } = await publishTo(product, destination);
  await reaches(product, deliveryId, 'delivered');

  const [notice] = await until('the notice', () => about(deliveryId).length > 0 && about(deliveryId));

  expect(notice).toEqual({
    routingKey: 'delivery.delivered',
    body: { v: 1, event: 'delivery.delivered', delivery_id: deliveryId, contract_ref: null },
  });
});

test('tells of a pause and a resumption', async () => {
  const { endpointId } = destination;
  await product.endpoints.pause(endpointId, { actor: 'test' });
  await product.endpoints.resume(endpointId, { actor: 'test' });

  await until('both notices', () => heard.filter((n) => n.routingKey.startsWith('endpoint.')).length >= 2);

  expect(heard.filter((n) => n.routingKey.startsWith('endpoint.'))).toEqual([
    { routingKey: 'endpoint.paused', body: { v: 1, event: 'endpoint.paused', endpoint_id: endpointId } },
    { routingKey: 'endpoint.resumed', body: { v: 1, event: 'endpoint.resumed', endpoint_id: endpointId } },
  ]);
});
