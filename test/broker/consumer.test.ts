import type { Channel } from 'amqplib';
import { describe, expect, it, vi } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import type { Incoming } from '../../src/broker/incoming.ts';
import { gate, numbered, PATIENT, setUpConsuming } from '../support/consuming.ts';
import { recordLog } from '../support/recorded-log.ts';

const on = setUpConsuming();

describe('a consumer', () => {
  it('hands over each message as it was sent, and acknowledges it when its handler is done', async () => {
    const seen: Incoming[] = [];
    const consumer = await on.start({
      handle: async (message) => {
        seen.push(message);
      },
    });
    await on.publisher.publish({
      exchange: on.names.wake,
      routingKey: 'now',
      body: Buffer.from('body'),
      headers: { a: 1, b: 'two' },
      correlationId: 'c-1',
      messageId: 'm-1',
      contentType: 'text/plain',
      properties: { replyTo: 'answers', type: 'kind', contentEncoding: 'utf-8', timestamp: 1_700_000_000 },
    });
    await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENT);
    expect(seen[0]).toEqual({
      body: Buffer.from('body'),
      routingKey: 'now',
      exchange: on.names.wake,
      redelivered: false,
      properties: {
        headers: { a: 1, b: 'two' },
        correlationId: 'c-1',
        messageId: 'm-1',
        contentType: 'text/plain',
        replyTo: 'answers',
        type: 'kind',
        contentEncoding: 'utf-8',
        timestamp: 1_700_000_000,
      },
    });
    await consumer.stop();
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
    expect(consumer.counters).toEqual({ taken: 1, acknowledged: 1, givenBack: 0 });
  });

  it('has no more in hand than its prefetch, and goes on behind a straggler', async () => {
    const straggler = gate();
    let most = 0;
    const done: string[] = [];
    const consumer = await on.start({
      prefetch: 4,
      handle: async (message) => {
        most = Math.max(most, consumer.inHand());
        if (String(message.body) === '0') await straggler.opened;
        done.push(String(message.body));
      },
    });
    await vi.waitFor(() => expect(consumer.isAttached()).toBe(true), PATIENT);
    await on.put(...numbered(100));
    await vi.waitFor(() => expect(done).toHaveLength(99), PATIENT);
    expect(done).not.toContain('0');
    expect(most).toBeLessThanOrEqual(4);
    straggler.open();
    await vi.waitFor(() => expect(done).toHaveLength(100), PATIENT);
    await consumer.stop();
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
  });

  it('loses no ack when it is stopped, whatever is in hand', async () => {
    const finish = gate();
    const consumer = await on.start({ prefetch: 50, handle: () => finish.opened });
    await on.put(...numbered(20));
    await vi.waitFor(() => expect(consumer.inHand()).toBe(20), PATIENT);
    const stopping = consumer.stop();
    await vi.waitFor(() => expect(consumer.isAttached()).toBe(false), PATIENT);
    await on.put('late');
    finish.open();
    await Promise.all([stopping, consumer.stop()]);
    expect(consumer.inHand()).toBe(0);
    expect(await on.countLeft(on.names.deliveries)).toBe(1);
  });

  it('drops the acks of a connection that was lost, and takes its messages again on the next', async () => {
    const finish = gate();
    const seen: string[] = [];
    const { log, lines } = recordLog();
    const consumer = await on.start({
      log,
      handle: async (message) => {
        seen.push(String(message.body));
        if (!message.redelivered) await finish.opened;
      },
    });
    await on.put(...numbered(8));
    await vi.waitFor(() => expect(seen).toHaveLength(8), PATIENT);
    on.proxy.cut();
    await vi.waitFor(() => expect(seen).toHaveLength(16), PATIENT);
    finish.open();
    await vi.waitFor(() => expect(consumer.inHand()).toBe(0), PATIENT);
    await on.put('after');
    await vi.waitFor(() => expect(seen).toContain('after'), PATIENT);
    await consumer.stop();
    expect([...seen].sort()).toEqual([...numbered(8), ...numbered(8), 'after'].sort());
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
    // An ack on the wrong channel would have cost that channel (406), which is a second loss.
    expect(lines.filter(({ event }) => event === 'broker.lost')).toHaveLength(1);
  });

  it('comes back when its queue was deleted and made again', async () => {
    const seen: string[] = [];
    const queue = `${on.config.prefix}.other`;
    const change = (work: (channel: Channel) => Promise<unknown>): Promise<unknown> =>
      withConnection(on.config, 'test', async (connection) => work(await connection.createChannel()));
    const send = (body: string): Promise<void> =>
      on.publisher.publish({ exchange: '', routingKey: queue, body: Buffer.from(body) });
    const declare = (): Promise<unknown> =>
      change((channel) => channel.assertQueue(queue, { arguments: { 'x-queue-type': 'quorum' } }));

    const consumer = await on.start({
      queue,
      handle: async (message) => {
        seen.push(String(message.body));
      },
    });
    expect(consumer.isAttached()).toBe(false);
    await declare();
    await send('1');
    await vi.waitFor(() => expect(seen).toEqual(['1']), PATIENT);
    await change((channel) => channel.deleteQueue(queue));
    await vi.waitFor(() => expect(consumer.isAttached()).toBe(false), PATIENT);
    await declare();
    await send('2');
    await vi.waitFor(() => expect(seen).toEqual(['1', '2']), PATIENT);
    await consumer.stop();
    await change((channel) => channel.deleteQueue(queue));
  });

  it('survives a process too busy for heartbeats', async () => {
    const seen: Incoming[] = [];
    const finish = gate();
    const { log, lines } = recordLog();
    const consumer = await on.start(
      {
        log,
        handle: async (message) => {
          seen.push(message);
          if (!message.redelivered) await finish.opened;
        },
      },
      { heartbeatSeconds: 1 },
    );
    await on.put('x');
    await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENT);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
    await vi.waitFor(() => expect(lines.map(({ event }) => event)).toContain('broker.lost'), PATIENT);
    await vi.waitFor(() => expect(seen).toHaveLength(2), PATIENT);
    expect(seen[1]?.redelivered).toBe(true);
    finish.open();
    await consumer.stop();
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
  });

  it('notices a broker that has fallen silent', async () => {
    const { log, lines } = recordLog();
    const consumer = await on.start({ log, handle: async () => {} }, { heartbeatSeconds: 1 });
    await vi.waitFor(() => expect(consumer.isAttached()).toBe(true), PATIENT);
    on.proxy.freeze(true);
    await vi.waitFor(() => expect(consumer.isAttached()).toBe(false), PATIENT);
    on.proxy.freeze(false);
    await vi.waitFor(() => expect(consumer.isAttached()).toBe(true), PATIENT);
    expect(lines.map(({ event }) => event)).toContain('broker.lost');
  });
});
