import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { notify } from '../../src/pipeline/reconcile/notify.ts';
import { insertNotice, listNotices } from '../../src/store/notices.ts';
import { drainQueue } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

/** A dead-letters queue that takes one notice and no more, and a subscriber to everything. */
async function openSmallQueue(subscriber: string): Promise<void> {
  const names = namesOf(product.config.broker.prefix);
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(names.deadLetters);
    await channel.assertQueue(names.deadLetters, {
      arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' },
    });
    await channel.bindQueue(names.deadLetters, names.deadLetters, '');
    await channel.assertQueue(subscriber);
    await channel.bindQueue(subscriber, names.notifications, '#');
    await channel.close();
  });
}

async function namesIn(queue: string): Promise<string[]> {
  const messages = await drainQueue(product, queue);
  return messages.map(({ fields }) => fields.routingKey);
}

test('a full dead-letters queue holds up none of the notices behind it', async () => {
  const names = namesOf(product.config.broker.prefix);
  const { pool } = product.parts;
  const subscriber = `${product.config.broker.prefix}.subscriber`;
  await openSmallQueue(subscriber);
  // More than a page of what cannot be taken.
  await Promise.all(
    Array.from({ length: 600 }, (_, i) =>
      insertNotice(pool, {
        name: 'delivery.dead_lettered',
        body: { delivery_id: `dlv_${i}`, dead_reason: 'x' },
      }),
    ),
  );
  await insertNotice(pool, { name: 'delivery.at_risk', body: { delivery_id: 'dlv_risk' } });
  const counts: number[] = [];
  const options = { ...product.parts, names, onPublished: (count: number) => counts.push(count) };

  await expect(notify(options)).rejects.toMatchObject({ failure: 'nacked' });
  const waiting = await listNotices(pool, { after: undefined, limit: 1_000 });
  expect(waiting.map((notice) => notice.name)).not.toContain('delivery.at_risk');
  expect((await namesIn(subscriber)).filter((name) => name === 'delivery.at_risk')).toHaveLength(1);
  const taken = await namesIn(names.deadLetters);
  expect(taken.length).toBeGreaterThan(0);
  expect(counts.reduce((a, b) => a + b, 0)).toBe(taken.length + 1);
  expect(waiting).toHaveLength(600 - taken.length);

  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(subscriber);
    await channel.close();
  });
});

test('notices wait while there is no connection, and the failure is told', async () => {
  const { pool, publisher } = product.parts;
  const names = namesOf(product.config.broker.prefix);
  const before = await listNotices(pool, { after: undefined, limit: 1_000 });
  await insertNotice(pool, { name: 'endpoint.disabled', body: { endpoint_id: 'ep_1' } });
  await publisher.close();
  await expect(notify({ pool, publisher, names, onPublished: () => undefined })).rejects.toMatchObject({
    failure: 'not_connected',
  });
  expect(await listNotices(pool, { after: undefined, limit: 1_000 })).toHaveLength(before.length + 1);
});
