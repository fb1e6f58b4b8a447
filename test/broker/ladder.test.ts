import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { type Consumer, startConsumer } from '../../src/broker/consumer.ts';
import type { Incoming } from '../../src/broker/incoming.ts';
import { connectPublisher, type Publisher } from '../../src/broker/publisher.ts';
import { setAside } from '../../src/broker/set-aside.ts';
import { type Names, namesOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { parseWakeUp, type WakeUp } from '../../src/domain/wakeup.ts';
import { openTestBroker, type TestBroker } from '../support/broker.ts';
import { recordLog } from '../support/recorded-log.ts';

const PATIENT = { timeout: 30_000, interval: 50 };
const DELIVERY = 'dlv_01h2xcejqtf2nbrexx3vqjhp41';

let broker: TestBroker;
let names: Names;
let publisher: Publisher;
const started: Consumer[] = [];

beforeEach(async () => {
  broker = await openTestBroker();
  names = namesOf(broker.config.prefix);
  publisher = await connectPublisher(broker.config, recordLog().log);
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((consumer) => consumer.stop()));
  await publisher.close();
  await broker.close();
});

async function collect(queue: string): Promise<Incoming[]> {
  const seen: Incoming[] = [];
  const handle = async (message: Incoming): Promise<void> => {
    seen.push(message);
  };
  started.push(
    await startConsumer({ config: broker.config, log: recordLog().log, queue, prefetch: 100, handle }),
  );
  return seen;
}

const wakeUps = (count: number): WakeUp[] =>
  Array.from({ length: count }, (_, id) => ({ deliveryId: DELIVERY, attempt: id + 1 }));

const attempts = (messages: Incoming[]): number[] =>
  messages.map(({ body }) => (parseWakeUp(body) as WakeUp).attempt).sort((a, b) => a - b);

describe('the delay ladder', () => {
  it('gives every wake-up back when its tier has passed, and not before', async () => {
    const sent = Date.now();
    const leftAfterMs: number[] = [];
    const seen = await collect(names.deliveries);
    await Promise.all(wakeUps(50).map((wakeUp) => publisher.wake(wakeUp, 1999)));
    await vi.waitFor(() => {
      while (leftAfterMs.length < seen.length) leftAfterMs.push(Date.now() - sent);
      expect(seen).toHaveLength(50);
    }, PATIENT);
    expect(attempts(seen)).toEqual(wakeUps(50).map(({ attempt }) => attempt));
    expect(Math.min(...leftAfterMs)).toBeGreaterThanOrEqual(1000);
  });

  it('loses nothing that falls due while the queue of due wake-ups is gone', async () => {
    const deleteQueue = (): Promise<unknown> =>
      withConnection(broker.config, 'test', async (connection) =>
        (await connection.createChannel()).deleteQueue(names.deliveries),
      );
    await Promise.all(wakeUps(50).map((wakeUp) => publisher.wake(wakeUp, 1000)));
    await deleteQueue();
    await vi.waitFor(async () => expect(await publisher.countReady(names.unrouted)).toBe(50), PATIENT);

    await applyTopology(broker.config, recordLog().log);
    const [kept, due] = [await collect(names.unrouted), await collect(names.deliveries)];
    await Promise.all(wakeUps(5).map((wakeUp) => publisher.wake(wakeUp, 1000)));
    await vi.waitFor(() => expect([kept.length, due.length]).toEqual([50, 5]), PATIENT);
    expect(attempts(kept)).toEqual(wakeUps(50).map(({ attempt }) => attempt));
  });
});

describe('a message that comes back again and again', () => {
  it.each([
    ['commands', 'event.publish', 'commandsRejected'],
    ['wake', 'now', 'poison'],
  ] as const)('sent to %s ends, whole, where people see it', async (exchange, routingKey, end) => {
    const seen = await collect(names[end]);
    await publisher.publish({
      exchange: names[exchange],
      routingKey,
      body: Buffer.from('kills'),
      messageId: 'm-1',
      headers: { a: 'b' },
    });
    await withConnection(broker.config, 'test', async (connection) => {
      const channel = await connection.createChannel();
      await channel.consume(exchange === 'wake' ? names.deliveries : names.commandsQueue, (message) => {
        if (message !== null) channel.nack(message, false, true);
      });
      await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENT);
    });
    expect(seen[0]?.body.toString()).toBe('kills');
    expect(seen[0]?.routingKey).toBe(routingKey);
    expect(seen[0]?.properties).toMatchObject({ messageId: 'm-1', headers: { a: 'b' } });
  });
});

describe('a message set aside', () => {
  it('keeps body, key and properties and gains the reason', async () => {
    const taken = await collect(names.commandsQueue);
    const seen = await collect(names.commandsRejected);
    const properties = {
      replyTo: 'answers',
      type: 'kind',
      appId: 'billing',
      timestamp: 1_700_000_000,
      priority: 3,
    };
    const headers = {
      tenant: 'a',
      nested: { list: [1, 'two', true] },
      at: { '!': 'timestamp', value: 1_700_000_000 },
    };
    await publisher.publish({
      exchange: names.commands,
      routingKey: 'reminder.shedule',
      body: Buffer.from([0xff, 0x00]),
      headers: { ...headers, CC: ['elsewhere'] },
      correlationId: 'c-1',
      messageId: 'm-1',
      contentType: 'application/x-odd',
      properties,
    });
    await vi.waitFor(() => expect(taken.length).toBeGreaterThan(0), PATIENT);
    await setAside(publisher, names.commandsRejected, {
      message: taken[0] as Incoming,
      reason: 'unsupported_command: no such command',
    });
    await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENT);
    expect(seen[0]).toMatchObject({ body: Buffer.from([0xff, 0x00]), routingKey: 'reminder.shedule' });
    expect(seen[0]?.properties).toEqual({
      ...properties,
      correlationId: 'c-1',
      messageId: 'm-1',
      contentType: 'application/x-odd',
      headers: { ...headers, 'x-duepost-error': 'unsupported_command: no such command' },
    });
  });

  it('loses its properties rather than itself when they cannot be written again', async () => {
    const seen = await collect(names.poison);
    const message: Incoming = {
      body: Buffer.from('kept'),
      routingKey: 'now',
      exchange: names.wake,
      redelivered: false,
      properties: { messageId: '\ufffd'.repeat(255), headers: { long: 'x'.repeat(100_000) } },
    };
    await setAside(publisher, names.poison, { message, reason: 'not JSON' });
    await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENT);
    expect(seen[0]?.body.toString()).toBe('kept');
    expect(seen[0]?.properties.headers['x-duepost-error']).toBe(
      'not JSON (its properties could not be kept)',
    );
  });

  it('stays with its sender when the broker does not take it', async () => {
    const message: Incoming = {
      body: Buffer.from('x'),
      routingKey: 'now',
      exchange: names.wake,
      redelivered: false,
      properties: { headers: {} },
    };
    await expect(
      setAside(publisher, names.wake, { message: { ...message, routingKey: 'nowhere' }, reason: 'no' }),
    ).rejects.toMatchObject({
      failure: 'returned',
    });
  });
});
