import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { replayRejected } from '../../src/broker/replay-rejected.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import {
  type Destination,
  drainQueue,
  forge,
  openDestination,
  publishTo,
  QUICK,
  reaches,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const CRASHES = 25;
let product: TestProduct;
let destination: Destination;
let client: AmqpClient;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  await destination.receiver.close();
  await product.close();
});

/** Takes whatever is in a queue and dies with it, again and again, until all of it has ended elsewhere. */
async function dieOf(queue: string, end: string, count: number): Promise<void> {
  const waiting = (name: string) => product.parts.publisher.countReady(name);
  await until('the messages', async () => (await waiting(queue)) === count);
  for (let crash = 1; crash <= CRASHES; crash += 1) {
    await withConnection(product.config.broker, 'test', async (connection) => {
      const channel = await connection.createChannel();
      await channel.prefetch(10);
      let taken = 0;
      await channel.consume(queue, () => {
        taken += 1;
      });
      await until('everything in hand', async () => taken === count || (await waiting(end)) === count);
    });
  }
  expect([await waiting(queue), await waiting(end)]).toEqual([0, count]);
}

test('a wake-up that kills every worker ends where people see it, and those beside it cost no delivery', async () => {
  const { deliveries, poison } = namesOf(product.config.broker.prefix);
  const published = await Promise.all(Array.from({ length: 5 }, () => publishTo(product, destination)));
  await forge(product, 'kills');
  await dieOf(deliveries, poison, 6);
  const bodies = (await drainQueue(product, poison)).map(({ content }) => content.toString());
  expect(bodies).toContain('kills');

  const stop = await product.start(['worker', 'reconciler']);
  for (const { deliveryId } of published) await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(destination.receiver.calls()).toHaveLength(5);
  expect(destination.receiver.effects()).toHaveLength(5);
});

test('commands whose consumer dies of them are set aside whole; put back, they are carried out and answered', async () => {
  const { commandsQueue, commandsRejected } = namesOf(product.config.broker.prefix);
  const keys = ['ord-1', 'ord-2', 'ord-3'];
  const answers = keys.map((key) =>
    client.call(
      'event.publish',
      Buffer.from(JSON.stringify({ v: 1, type: 'order.created', payload: {}, idempotency_key: key })),
    ),
  );
  await dieOf(commandsQueue, commandsRejected, keys.length);

  const stop = await product.start(['ingress']);
  const errors: unknown[] = [];
  const options = { limit: 10, onCommand: ({ error }: { error: unknown }) => errors.push(error) };
  expect(await replayRejected(product.config.broker, product.parts.publisher, options)).toBe(3);
  // Nobody of ours refused them; the broker's own mark says what happened.
  const reason = `delivery_limit: whatever took it from ${commandsQueue} died of it or gave it back, again and again`;
  expect(errors).toEqual([reason, reason, reason]);
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatchObject({ ok: true, duplicate: false });
  }
  await stop();
});

test('a delivery that kills its worker each time ends with its attempts, and the others are delivered once', async () => {
  const stop = await product.start(['reconciler']);
  const killer = await openDestination(product, {
    answers: ['hang'],
    policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 3 },
  });
  const { deliveryId } = await publishTo(product, killer);
  const others = await Promise.all(Array.from({ length: 5 }, () => publishTo(product, destination)));
  for (let crash = 1; crash <= 3; crash += 1) {
    const worker = await startProcess(product, 'worker', {
      DUEPOST_EGRESS_TIMEOUT_MS: '20000',
      DUEPOST_CLAIM_LEASE_MS: '22000',
    });
    await until('the call', () => killer.receiver.calls().length === crash);
    process.kill(worker.pid, 'SIGKILL');
    await worker.ended;
    // Nobody waits for 22 s here: the lease is over.
    await product.parts.pool.query(
      `update delivery set claim_expires_at = now() where state = 'in_flight' and claim_expires_at > now()`,
    );
  }
  const stopWorker = await product.start(['worker']);
  const outcome = await reaches(product, deliveryId, 'dead_lettered');
  for (const other of others) await reaches(product, other.deliveryId, 'delivered');
  await Promise.all([stop(), stopWorker()]);
  expect(outcome.deadReason).toBe('attempts_exhausted');
  expect(outcome.attempts.map((a) => [a.attempt, a.outcome])).toEqual([
    [1, 'unknown'],
    [2, 'unknown'],
    [3, 'unknown'],
  ]);
  expect(outcome.auditRecords).toHaveLength(1);
  expect(killer.receiver.calls()).toHaveLength(3);
  const effects = destination.receiver.effects().map((effect) => effect.deliveryId);
  for (const other of others) expect(effects.filter((id) => id === other.deliveryId)).toHaveLength(1);
  await killer.receiver.close();
});
