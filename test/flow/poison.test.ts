import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { forge, QUICK, takeMessage } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker'], env: QUICK });
});

afterAll(() => product.close());

const DELIVERY = 'dlv_01jzzzzzzzz8mzzzzzzzzzzzzz';

test.each([
  ['no JSON', 'gibberish', 'the body is not a JSON object in UTF-8'],
  ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x00]), 'the body is not a JSON object in UTF-8'],
  ['another version', { v: 2, delivery_id: DELIVERY, contract_ref: null, attempt: 1 }, 'v must be 1'],
  [
    'no id',
    { v: 1, delivery_id: "x'; drop table delivery", contract_ref: null, attempt: 1 },
    'delivery_id must be',
  ],
  ['no attempt', { v: 1, delivery_id: DELIVERY, contract_ref: null, attempt: '1' }, 'attempt must be'],
  ['an endless body', JSON.stringify({ v: 1, padding: 'x'.repeat(20_000) }), 'the body is longer than'],
])('a wake-up with %s ends in the poison queue, whole and with the reason', async (_, body, reason) => {
  await forge(product, body);
  const message = await takeMessage(product, namesOf(product.config.broker.prefix).poison);
  const sent = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  expect(message.content).toEqual(Buffer.from(sent));
  expect(message.properties.headers?.['x-duepost-error']).toContain(reason);
});
