import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { takeMessage } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

const LIMIT = 4096;
let product: TestProduct;
let client: AmqpClient;

beforeAll(async () => {
  product = await openTestProduct({
    roles: ['ingress'],
    env: { DUEPOST_MAX_PAYLOAD_BYTES: String(LIMIT) },
  });
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  await product.close();
});

/** A command whose payload has so many bytes; `é` has two. */
function commandOf(bytes: number): Buffer {
  const payload = `é${'x'.repeat(bytes - 4)}`;
  return Buffer.from(JSON.stringify({ v: 1, idempotency_key: `b-${bytes}`, type: 'order.created', payload }));
}

test('a payload over AMQP may have as many bytes as are allowed, and not one more', async () => {
  expect(await client.call('event.publish', commandOf(LIMIT))).toMatchObject({ ok: true });
  const { ok, error } = (await client.call('event.publish', commandOf(LIMIT + 1))) as {
    ok: boolean;
    error: { code: string; errors: { path: string }[] };
  };
  await takeMessage(product, namesOf(product.config.broker.prefix).commandsRejected);
  expect([ok, error.code, error.errors[0]?.path]).toEqual([false, 'payload_too_large', '/payload']);
  const { rows } = await product.parts.pool.query(
    `select idempotency_key from event where idempotency_key like 'b-%'`,
  );
  expect(rows).toEqual([{ idempotency_key: `b-${LIMIT}` }]);
});

test('a command with 60 KB of headers is answered, and set aside when it is refused', async () => {
  const headers = { blob: 'x'.repeat(60_000) };
  expect(await client.call('event.publish', commandOf(100), { headers })).toMatchObject({ ok: true });
  expect(await client.call('event.pubish', commandOf(101), { headers })).toMatchObject({ ok: false });
  const message = await takeMessage(product, namesOf(product.config.broker.prefix).commandsRejected);
  expect(message.content.equals(commandOf(101))).toBe(true);
  expect(message.properties.headers?.['x-duepost-error']).toMatch(/^unsupported_command: /);
});
