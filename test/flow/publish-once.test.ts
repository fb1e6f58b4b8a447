import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { type Destination, openDestination, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday } from '../support/reminders.ts';

let product: TestProduct;
let destination: Destination;
let client: AmqpClient;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['ingress', 'worker', 'reconciler'], env: QUICK });
  // Two that take commands: whoever is first, the other must see it.
  await product.start(['ingress']);
  destination = await openDestination(product);
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  await destination.receiver.close();
  await product.close();
});

function commandOf(kind: 'event' | 'reminder'): { routingKey: string; body: Record<string, unknown> } {
  if (kind === 'event') {
    const body = { v: 1, type: 'order.created', payload: { a: 1, b: 2 }, endpoint: destination.name };
    return { routingKey: 'event.publish', body: { ...body, idempotency_key: 'ord_10241' } };
  }
  return {
    routingKey: 'reminder.schedule',
    body: {
      v: 1,
      idempotency_key: 'pol-7781-2027',
      contract_ref: 'pol-7781',
      endpoint: destination.name,
      renewal_date: daysFromToday(30),
      notice_period: 'P30D',
      jurisdiction: '24x7',
      time_zone: 'UTC',
      payload: { a: 1, b: 2 },
    },
  };
}

test.each(['event', 'reminder'] as const)('an %s published 200 times at once is one thing', async (kind) => {
  const { routingKey, body } = commandOf(kind);
  const bytes = Buffer.from(JSON.stringify(body));
  // The same content, written differently.
  const { payload: _, ...rest } = body;
  const shuffled = Buffer.from(`{ "payload": {"b":2, "a":1},\n ${JSON.stringify(rest).slice(1)}`);
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => client.call(routingKey, i % 2 === 0 ? bytes : shuffled)),
  );
  expect(answers.filter((answer) => answer['ok'] !== true)).toEqual([]);
  expect(answers.filter((answer) => answer['duplicate'] === false)).toHaveLength(1);
  const ids = answers.map(
    (a) => a['delivery_id'] ?? (a['deliveries'] as { delivery_id: string }[])[0]?.delivery_id,
  );
  expect(new Set(ids).size).toBe(1);
  const outcome = await reaches(product, ids[0] as string, 'delivered');
  expect(outcome.attempts).toHaveLength(1);
  expect(destination.receiver.effects().filter((e) => e.deliveryId === ids[0])).toHaveLength(1);
});

test.each(['event', 'reminder'] as const)('other content under the key of an %s is refused', async (kind) => {
  const { routingKey, body } = commandOf(kind);
  const answer = await client.call(routingKey, Buffer.from(JSON.stringify({ ...body, payload: { a: 2 } })));
  expect(answer).toMatchObject({ ok: false, error: { code: 'idempotency_key_reused' } });
});
