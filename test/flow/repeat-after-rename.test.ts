import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Refusal } from '../../src/domain/refusal.ts';
import { type Destination, openDestination, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday } from '../support/reminders.ts';

const BY = { actor: 'test' };
let product: TestProduct;
const opened: Destination[] = [];

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(async () => {
  await Promise.all(opened.map(({ receiver }) => receiver.close()));
  await product.close();
});

async function open(): Promise<Destination> {
  const destination = await openDestination(product);
  opened.push(destination);
  return destination;
}

function publish(endpoint: string, idempotencyKey: string) {
  return publishTo(product, { name: endpoint }, { idempotencyKey });
}

async function schedule(endpoint: string, idempotencyKey: string) {
  const { reminder, duplicate } = await product.reminders.schedule({
    idempotencyKey,
    contractRef: 'pol-7781',
    endpoint,
    renewalDate: daysFromToday(90),
    noticePeriod: 'P30D',
    jurisdiction: '24x7',
    timeZone: 'UTC',
    deadline: undefined,
    deadlineAt: undefined,
    type: undefined,
    payload: { premium: 12 },
    actor: 'test',
  });
  return { deliveryId: reminder.deliveryId, duplicate };
}

function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'accepted',
    (error: Refusal) => error.code,
  );
}

test('an event that went to whoever wanted it is another than one for the endpoint it went to', async () => {
  const { name, endpointId } = await open();
  const event = { idempotencyKey: 'to-all', type: 'order.created' };
  const all = await product.events.publish({
    ...event,
    payload: {},
    endpoint: undefined,
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: 'test',
  });
  expect(all.deliveries).toHaveLength(1);
  await product.endpoints.remove(endpointId, BY);
  expect(await codeOf(publishTo(product, { name }, { ...event, payload: {} }))).toBe(
    'idempotency_key_reused',
  );
});

test.each([
  ['an event', publish],
  ['a reminder', schedule],
])('the repetition of %s is one, whatever its endpoint is called by now', async (kind, send) => {
  const { name, endpointId } = await open();
  const key = `repeat-${kind.replace(' ', '-')}`;
  const first = await send(name, key);
  await product.endpoints.patch(endpointId, { name: `${name}-renamed` }, BY);
  const same = { deliveryId: first.deliveryId, duplicate: true };
  expect(await send(name, key)).toMatchObject(same);
  expect(await send(`${name}-renamed`, key)).toMatchObject(same);
  expect(await send(endpointId, key)).toMatchObject(same);
  expect(await codeOf(send(`${name}-mistyped`, key))).toBe('idempotency_key_reused');

  const other = await open();
  await product.endpoints.patch(other.endpointId, { name }, BY);
  expect(await codeOf(send(name, key))).toBe('idempotency_key_reused');

  await product.endpoints.remove(endpointId, BY);
  expect(await send(`${name}-renamed`, key)).toMatchObject(same);
  expect(await codeOf(send(`${name}-renamed`, `${key}-new`))).toBe('not_found');
});
