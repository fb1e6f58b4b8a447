import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { takeMessage } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let client: AmqpClient;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['ingress'] });
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  await product.close();
});

function isGivenUp({ event, fields }: { event: string; fields: Record<string, unknown> }): boolean {
  return event === 'reply_not_delivered' && fields['error'] === 'reply_to names a queue of duepost itself';
}

const EVENT = { v: 1, type: 'order.created', payload: {} };

test.each([
  ['an unknown command', 'event.pubish', JSON.stringify(EVENT), {}, 'unsupported_command'],
  ['a name of every object', 'constructor', JSON.stringify(EVENT), {}, 'unsupported_command'],
  ['another version', 'event.publish', JSON.stringify({ ...EVENT, v: 2 }), {}, 'unsupported_version'],
  ['no JSON', 'event.publish', '{"v":1,', {}, 'invalid_request'],
  ['no object', 'event.publish', '[1]', {}, 'invalid_request'],
  ['bytes that are no text', 'event.publish', Buffer.from([0x7b, 0xff, 0x7d]), {}, 'invalid_request'],
  ['gzip', 'event.publish', JSON.stringify(EVENT), { contentEncoding: 'gzip' }, 'invalid_request'],
  ['5 MB', 'event.publish', JSON.stringify({ ...EVENT, payload: 'x'.repeat(5e6) }), {}, 'payload_too_large'],
  ['no key', 'event.publish', JSON.stringify(EVENT), {}, 'idempotency_key_missing'],
])('%s is answered and set aside with its reason', async (_, routingKey, body, properties, code) => {
  const answer = await client.call(routingKey, Buffer.from(body), properties);
  expect(answer).toMatchObject({ ok: false, error: { code } });
  const message = await takeMessage(product, namesOf(product.config.broker.prefix).commandsRejected);
  expect(message.content.equals(Buffer.from(body))).toBe(true);
  expect(message.properties.headers?.['x-duepost-error']).toMatch(new RegExp(`^${code}: .`));
  expect(message.properties.correlationId).toBe(answer['correlation_id']);
  expect(message.fields.routingKey).toBe(routingKey);
});

test('no answer goes into the queues of duepost, whoever asks for it there', async () => {
  const { deliveries, deadLetters } = namesOf(product.config.broker.prefix);
  const body = Buffer.from(JSON.stringify(EVENT));
  await client.send('event.publish', body, { replyTo: deadLetters, messageId: 'k2' });
  await client.send('event.publish', Buffer.from('{}'), { replyTo: deliveries, messageId: 'k3' });
  // The commands themselves are taken as any.
  await takeMessage(product, namesOf(product.config.broker.prefix).commandsRejected);
  await until('both answers to be given up', () => product.recorded.lines.filter(isGivenUp).length === 2);
  expect(await client.call('event.publish', body, { messageId: 'k2' })).toMatchObject({ duplicate: true });
  for (const queue of [deliveries, deadLetters])
    expect(await product.parts.publisher.countReady(queue)).toBe(0);
});

test('what cannot be answered is set aside all the same, and the next command is taken', async () => {
  const rejected = namesOf(product.config.broker.prefix).commandsRejected;
  await client.send('no.such', Buffer.from('{}'), { replyTo: 'nobody-is-here', correlationId: 'x' });
  expect((await takeMessage(product, rejected)).properties.replyTo).toBe('nobody-is-here');
  const answer = await client.call('event.publish', Buffer.from(JSON.stringify(EVENT)), { messageId: 'k1' });
  expect(answer).toMatchObject({ ok: true, duplicate: false });
});
