import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { createTellDelivered } from '../../src/pipeline/deliver/tell-delivered.ts';
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

async function removeQueue(queue: string): Promise<void> {
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(queue);
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
  const options = {
    ...product.parts,
    names,
    toldPeople: new Set<string>(),
    onPublished: (count: number) => counts.push(count),
  };

  await expect(notify(options)).rejects.toMatchObject({ failure: 'nacked' });
  const waiting = await listNotices(pool, { after: undefined, limit: 1_000 });
  expect(waiting.map((notice) => notice.name)).not.toContain('delivery.at_risk');
  expect((await namesIn(subscriber)).filter((name) => name === 'delivery.at_risk')).toHaveLength(1);
  const taken = await namesIn(names.deadLetters);
  expect(taken.length).toBeGreaterThan(0);
  expect(counts.reduce((a, b) => a + b, 0)).toBe(taken.length + 1);
  expect(waiting).toHaveLength(600 - taken.length);

  await removeQueue(subscriber);
});

test('a notice that people cannot take is not told to others with every pass', async () => {
  const names = namesOf(product.config.broker.prefix);
  const { pool } = product.parts;
  const subscriber = `${product.config.broker.prefix}.another`;
  await openSmallQueue(subscriber);
  await pool.query('delete from notice');
  for (const id of ['dlv_a', 'dlv_b', 'dlv_c'])
    await insertNotice(pool, { name: 'delivery.dead_lettered', body: { delivery_id: id, dead_reason: 'x' } });
  const options = { ...product.parts, names, toldPeople: new Set<string>(), onPublished: () => undefined };
  for (let passes = 0; passes < 3; passes += 1) await notify(options).catch(() => undefined);
  const taken = 3 - (await listNotices(pool, { after: undefined, limit: 10 })).length;
  expect(taken).toBeLessThan(3);
  expect(await namesIn(subscriber)).toHaveLength(taken);
  await removeQueue(subscriber);
});

test('people are told once of a dead letter, however long the queue of another service refuses it', async () => {
  const names = namesOf(product.config.broker.prefix);
  const { pool } = product.parts;
  const subscriber = `${product.config.broker.prefix}.full`;
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(names.deadLetters);
    await channel.assertQueue(subscriber, {
      arguments: { 'x-max-length': 0, 'x-overflow': 'reject-publish' },
    });
    await channel.bindQueue(subscriber, names.notifications, '#');
    await channel.close();
  });
  await applyTopology(product.config.broker, product.recorded.log);
  await pool.query('delete from notice');
  const body = { delivery_id: 'dlv_1', dead_reason: 'attempts_exhausted' };
  await insertNotice(pool, { name: 'delivery.dead_lettered', body });
  const options = { ...product.parts, names, toldPeople: new Set<string>(), onPublished: () => undefined };
  for (let passes = 0; passes < 3; passes += 1) {
    await expect(notify(options)).rejects.toMatchObject({ failure: 'nacked' });
  }
  await removeQueue(subscriber);
  await notify(options);
  expect(await namesIn(names.deadLetters)).toEqual(['delivery.dead_lettered']);
  expect(options.toldPeople.size).toBe(0);
});

test('a delivery is told as delivered under one message id, on whatever way', async () => {
  const names = namesOf(product.config.broker.prefix);
  const { pool } = product.parts;
  const subscriber = `${product.config.broker.prefix}.third`;
  await openSmallQueue(subscriber);
  await pool.query('delete from notice');
  // As after a confirm that was lost.
  await insertNotice(pool, {
    name: 'delivery.delivered',
    body: { delivery_id: 'dlv_1', contract_ref: null },
  });
  await notify({ ...product.parts, names, toldPeople: new Set<string>(), onPublished: () => undefined });
  await createTellDelivered({
    db: pool,
    publisher: product.parts.publisher,
    exchange: names.notifications,
  })({ deliveryId: 'dlv_1' });
  const messages = await drainQueue(product, subscriber);
  expect(messages.map(({ properties }) => properties.messageId)).toEqual([
    'delivered-dlv_1',
    'delivered-dlv_1',
  ]);
  await removeQueue(subscriber);
});

test('notices wait while there is no connection, and the failure is told', async () => {
  const { pool, publisher } = product.parts;
  const names = namesOf(product.config.broker.prefix);
  const before = await listNotices(pool, { after: undefined, limit: 1_000 });
  await insertNotice(pool, { name: 'endpoint.disabled', body: { endpoint_id: 'ep_1' } });
  await publisher.close();
  await expect(
    notify({ pool, publisher, names, toldPeople: new Set<string>(), onPublished: () => undefined }),
  ).rejects.toMatchObject({
    failure: 'not_connected',
  });
  expect(await listNotices(pool, { after: undefined, limit: 1_000 })).toHaveLength(before.length + 1);
});
