import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { runCli } from '../support/cli.ts';
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

const REPLAY = ['commands', 'replay-rejected', '--json'];

function publishTo(endpoint: string, messageId: string): Promise<unknown> {
  const body = JSON.stringify({ v: 1, type: 'order.created', payload: { n: 1 }, endpoint });
  return client.call('event.publish', Buffer.from(body), { messageId });
}

function countWaiting(): Promise<number> {
  const queue = namesOf(product.config.broker.prefix).commandsRejected;
  return withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    return (await channel.checkQueue(queue)).messageCount;
  });
}

test('shows what was rejected and why, and leaves it; puts it back when it can be carried out', async () => {
  await publishTo('later', 'k-1');
  await publishTo('never', 'k-2');
  await until('both to be set aside', async () => (await countWaiting()) === 2);
  const shown = await runCli([...REPLAY, '--dry-run'], product.env);
  expect(shown.json).toMatchObject({ waiting: 2, replayed: 0, dry_run: true });
  expect(shown.json.commands).toMatchObject([
    { routing_key: 'event.publish', message_id: 'k-1', error: expect.stringMatching(/^not_found: /) },
    { message_id: 'k-2' },
  ]);
  await until('both to be back', async () => (await countWaiting()) === 2);

  await product.endpoints.create({ name: 'later', url: 'http://127.0.0.1:59999/' }, { actor: 'test' });
  const first = await runCli([...REPLAY, '--limit', '1'], product.env);
  expect(first.json).toMatchObject({ waiting: 2, replayed: 1 });
  const event = await until('the event', async () => {
    const { rows } = await product.parts.pool.query('select type from event where idempotency_key = $1', [
      'k-1',
    ]);
    return rows[0];
  });
  expect(event.type).toBe('order.created');

  const second = await runCli(REPLAY, product.env);
  expect(second.json).toMatchObject({ waiting: 1, replayed: 1, commands: [{ message_id: 'k-2' }] });
  await until('the other to be rejected again', async () => (await countWaiting()) === 1);
  const again = await runCli([...REPLAY, '--dry-run'], product.env);
  expect(again.json.commands).toMatchObject([
    { message_id: 'k-2', error: expect.stringMatching(/^not_found: /) },
  ]);
});
