import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readBody } from '../../src/receiver/read-body.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const MIB = 1_048_576;
let product: TestProduct;
let client: AmqpClient;
let server: Server;
/** Bodies as they came, by idempotency key. */
const bodies = new Map<string, string>();

beforeAll(async () => {
  product = await openTestProduct({
    roles: ['ingress', 'worker', 'reconciler'],
    env: { ...QUICK, DUEPOST_EGRESS_TIMEOUT_MS: '2000', DUEPOST_CLAIM_LEASE_MS: '4000' },
  });
  client = await openAmqpClient(product);
  server = createServer((request, response) => {
    void readBody(request, 4 * MIB).then((body) => {
      bodies.set(String(request.headers['idempotency-key']).split(':')[0] ?? '', String(body));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await product.endpoints.create({ name: 'odd', url: `http://127.0.0.1:${port}/` }, { actor: 'test' });
});

afterAll(async () => {
  await client.close();
  server.close();
  await product.close();
});

/** The command as text, so that nothing of the payload is read and written again on the way. */
function publish(payload: string, more = ''): Promise<Record<string, unknown>> & { readonly key: string } {
  const key = randomUUID();
  const text = `{"v":1,"type":"order.created","endpoint":"odd","idempotency_key":"${key}"${more},"payload":${payload}}`;
  return Object.assign(client.call('event.publish', Buffer.from(text)), { key });
}

async function received(key: string): Promise<string> {
  const body = await until(`the body of ${key}`, () => bodies.get(key));
  return body.slice(body.indexOf('"data":') + '"data":'.length, -1);
}

test.each([
  [
    'integers beyond 2^53 and numbers as they were written',
    '{"id":9007199254740993,"n":[1e400,-0,1.10,12345678901234567890.123]}',
  ],
  ['U+0000 and other control characters, escaped', '{"a":"x\\u0000y\\u001f","b\\u0000":1}'],
  ['halves of surrogate pairs, escaped', '{"lone":"\\ud800","other":"\\udc00\\ud800"}'],
  ['characters outside the first plane, and separators', '{"t":"😀 Prämie \\u2028"}'],
  ['members of the prototype', '{"__proto__":{"a":1},"constructor":2,"toString":3}'],
  ['nothing at all', 'null'],
])('%s arrive as they were sent', async (_, payload) => {
  const sent = publish(payload);
  expect(await sent).toMatchObject({ ok: true });
  const data = await received(sent.key);
  // Escapes may be written in another way; numbers may not.
  const read = (text: string): unknown => JSON.parse(text.replace(/(?<=[[:,])(-?[0-9][^,\]}]*)/g, '"$1"'));
  expect(read(data)).toEqual(read(payload));
});

test('a payload of exactly 1 MiB is delivered, one byte more is refused', async () => {
  const payload = `"${'ü'.repeat((MIB - 2) / 2)}"`;
  const sent = publish(payload);
  expect(await sent).toMatchObject({ ok: true });
  // Not compared as text: a difference would be printed.
  expect((await received(sent.key)) === payload).toBe(true);
  expect(await publish(`"${'ü'.repeat((MIB - 2) / 2)}a"`)).toMatchObject({
    ok: false,
    error: { code: 'payload_too_large' },
  });
});

test('numbers that only differ beyond a double are different content', async () => {
  const key = randomUUID();
  const withId = (id: string): Buffer =>
    Buffer.from(`{"v":1,"type":"a","endpoint":"odd","idempotency_key":"${key}","payload":{"id":${id}}}`);
  expect(await client.call('event.publish', withId('9007199254740993'))).toMatchObject({ duplicate: false });
  expect(await client.call('event.publish', withId('9007199254740993'))).toMatchObject({ duplicate: true });
  expect(await client.call('event.publish', withId('9007199254740992'))).toMatchObject({
    error: { code: 'idempotency_key_reused' },
  });
});

test.each([
  ['U+0000', '\\u0000'],
  ['half of a surrogate pair', '\\ud800'],
])('%s where a name is wanted is refused, or stored, but never a fault', async (_, character) => {
  const answer = await publish('{}', `,"contract_ref":"pol${character}1"`);
  const isClear = answer['ok'] === true || (answer['error'] as { code: string }).code === 'invalid_request';
  expect(isClear).toBe(true);
  expect(product.recorded.lines.filter((line) => line.level === 'error')).toEqual([]);
});
