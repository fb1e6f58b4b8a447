import type { ConfirmChannel } from 'amqplib';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type BrokerConfig, withConnection } from '../../src/broker/connection.ts';
import type { Outgoing } from '../../src/broker/outgoing.ts';
import { connectPublisher, type Publisher } from '../../src/broker/publisher.ts';
import { type Names, namesOf } from '../../src/broker/topology.ts';
import { parseWakeUp } from '../../src/domain/wakeup.ts';
import { openTestBroker, type TestBroker, targetOf, throughPort } from '../support/broker.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';

const DELIVERY = 'dlv_01h2xcejqtf2nbrexx3vqjhp41';
const PATIENT = { timeout: 20_000, interval: 20 };

let broker: TestBroker;
let names: Names;
let proxy: Proxy;
const opened: Publisher[] = [];

beforeAll(async () => {
  broker = await openTestBroker();
  names = namesOf(broker.config.prefix);
  proxy = await startProxy(targetOf(broker.config));
});

afterEach(async () => {
  proxy.dropReplies(false);
  proxy.refuse(false);
  proxy.freeze(false);
  proxy.cut();
  await Promise.all(opened.splice(0).map((publisher) => publisher.close()));
  await onChannel(async (channel) => {
    for (const queue of [names.deliveries, names.poison, ...names.tiers]) await channel.purgeQueue(queue);
  });
});

afterAll(async () => {
  await proxy.close();
  await broker.close();
});

function onChannel<T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
  return withConnection(broker.config, 'test', async (connection) =>
    work(await connection.createConfirmChannel()),
  );
}

async function open(changes: Partial<BrokerConfig> = {}, log = recordLog().log): Promise<Publisher> {
  const publisher = await connectPublisher({ ...throughPort(broker.config, proxy.port), ...changes }, log);
  opened.push(publisher);
  return publisher;
}

const due = (id: number): Outgoing => ({
  exchange: names.wake,
  routingKey: 'now',
  body: Buffer.from(String(id)),
});

/** The bodies that wait in a queue, in order. */
function drain(queue: string): Promise<string[]> {
  return onChannel(async (channel) => {
    const bodies: string[] = [];
    for (
      let message = await channel.get(queue, { noAck: true });
      message;
      message = await channel.get(queue, { noAck: true })
    ) {
      bodies.push(message.content.toString());
    }
    return bodies;
  });
}

function failuresOf(results: PromiseSettledResult<void>[]): unknown[] {
  return results.map((result) =>
    result.status === 'rejected'
      ? ((result.reason as { failure?: unknown }).failure ?? result.reason)
      : 'confirmed',
  );
}

describe('a publisher', () => {
  it('puts a wake-up where consumers find it: persistent, identifiers only, with a message id of its own', async () => {
    const publisher = await open();
    await publisher.wake({ deliveryId: DELIVERY, contractRef: 'pol-1', attempt: 1 }, 0);
    await publisher.wake({ deliveryId: DELIVERY, attempt: 2 }, -5);
    const messages = await onChannel(async (channel) => [
      await channel.get(names.deliveries, { noAck: true }),
      await channel.get(names.deliveries, { noAck: true }),
    ]);
    const properties = messages.map((message) => message && message.properties);
    expect(messages.map((message) => message && parseWakeUp(message.content))).toEqual([
      { deliveryId: DELIVERY, contractRef: 'pol-1', attempt: 1 },
      { deliveryId: DELIVERY, attempt: 2 },
    ]);
    expect(properties).toMatchObject([
      { deliveryMode: 2, headers: {} },
      { deliveryMode: 2, contentType: 'application/json' },
    ]);
    expect(new Set(properties.map((each) => each && each.messageId)).size).toBe(2);
  });

  it.each([
    [0, 'deliveries'],
    [-1, 'deliveries'],
    [0.4, 'deliveries'],
    [999, 'deliveries'],
    [128_000, 'delay.t0128'],
    [255_000, 'delay.t0128'],
    [256_000, 'delay.t0256'],
    [2 ** 31, 'delay.t2048'],
    [4_294_967_295, 'delay.t2048'],
    [4_294_967_296, 'delay.t2048'],
    [31_536_000_000, 'delay.t2048'],
    [Number.POSITIVE_INFINITY, 'delay.t2048'],
  ])('keeps a wake-up that has %d ms left in %s', async (remainingMs, queue) => {
    const publisher = await open();
    await publisher.wake({ deliveryId: DELIVERY, attempt: 1 }, remainingMs);
    expect(await publisher.countReady(`${broker.config.prefix}.v1.${queue}`)).toBe(1);
  });

  it('refuses a time that is not a number for that wake-up only', async () => {
    const publisher = await open();
    const results = await Promise.allSettled([
      publisher.wake({ deliveryId: DELIVERY, attempt: 1 }, 0),
      publisher.wake({ deliveryId: DELIVERY, attempt: 1 }, Number.NaN),
      publisher.wake({ deliveryId: DELIVERY, attempt: 1 }, 0),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(publisher.isReady()).toBe(true);
  });

  it('refuses what cannot be encoded for that message only', async () => {
    const publisher = await open();
    const results = await Promise.allSettled([
      publisher.publish(due(1)),
      publisher.publish({ ...due(2), headers: { long: 'x'.repeat(200_000) } }),
      publisher.publish({ ...due(3), correlationId: 'x'.repeat(256) }),
      publisher.publish({ ...due(4), routingKey: 'x'.repeat(256) }),
      publisher.publish(due(5)),
    ]);
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
      'fulfilled',
    ]);
    expect(await drain(names.deliveries)).toEqual(['1', '5']);
    expect(publisher.counters).toMatchObject({ published: 2, lost: 0 });
  });

  it('does not take an unroutable message for a published one', async () => {
    const publisher = await open();
    const results = await Promise.allSettled([
      publisher.publish({ ...due(1), messageId: 'same' }),
      publisher.publish({ ...due(2), messageId: 'same', routingKey: 'nowhere' }),
      publisher.publish({ ...due(3), messageId: 'same' }),
      publisher.publish({ ...due(4), routingKey: 'nowhere', mandatory: false }),
    ]);
    expect(failuresOf(results)).toEqual(['confirmed', 'returned', 'confirmed', 'confirmed']);
    expect(publisher.counters).toMatchObject({ published: 3, returned: 1 });
    expect(await drain(names.deliveries)).toEqual(['1', '3']);
  });

  it('publishes again when the binding is back', async () => {
    const publisher = await open();
    await onChannel((channel) => channel.unbindQueue(names.tiers[9] ?? '', names.wake, 't0512'));
    const wakeUp = { deliveryId: DELIVERY, attempt: 1 };
    await expect(publisher.wake(wakeUp, 600_000)).rejects.toMatchObject({ failure: 'returned' });
    await onChannel((channel) => channel.bindQueue(names.tiers[9] ?? '', names.wake, 't0512'));
    await expect(publisher.wake(wakeUp, 600_000)).resolves.toBeUndefined();
  });

  it('hears when a full queue refuses', async () => {
    const publisher = await open();
    const full = `${broker.config.prefix}.full`;
    await onChannel((channel) =>
      channel.assertQueue(full, {
        arguments: { 'x-queue-type': 'classic', 'x-max-length': 1, 'x-overflow': 'reject-publish' },
      }),
    );
    const results: PromiseSettledResult<void>[] = [];
    for (const id of [1, 2])
      results.push(
        ...(await Promise.allSettled([publisher.publish({ ...due(id), exchange: '', routingKey: full })])),
      );
    expect(failuresOf(results)).toEqual(['confirmed', 'nacked']);
    expect(publisher.counters.nacked).toBe(1);
    await onChannel((channel) => channel.deleteQueue(full));
  });

  it('has at most so many unconfirmed, and gets all of them across', async () => {
    let sent = 0;
    proxy.onClientData((chunk) => {
      sent += chunk.toString('latin1').split(names.wake).length - 1;
    });
    const publisher = await open({ maxUnconfirmed: 3 });
    proxy.dropReplies(true);
    const first = Promise.allSettled(Array.from({ length: 20 }, (_, id) => publisher.publish(due(id))));
    await vi.waitFor(() => expect(sent).toBe(3), PATIENT);
    proxy.dropReplies(false);
    proxy.cut();
    expect(failuresOf(await first)).toEqual([...Array(3).fill('lost'), ...Array(17).fill('not_connected')]);
    expect(sent).toBe(3);

    await vi.waitFor(() => expect(publisher.isReady()).toBe(true), PATIENT);
    await drain(names.deliveries);
    await Promise.all(Array.from({ length: 200 }, (_, id) => publisher.publish(due(id))));
    expect(await drain(names.deliveries)).toEqual(Array.from({ length: 200 }, (_, id) => String(id)));
  });

  it('gives up on a confirm that does not come, and does not believe one that comes too late', async () => {
    const publisher = await open({ confirmTimeoutMs: 500 });
    proxy.freeze(true);
    await expect(publisher.publish(due(1))).rejects.toMatchObject({ failure: 'timed_out' });
    proxy.freeze(false);
    await publisher.publish(due(2));
    expect(publisher.counters).toEqual({
      published: 1,
      returned: 0,
      unwanted: 0,
      nacked: 0,
      timedOut: 1,
      lost: 0,
    });
    expect(await drain(names.deliveries)).toEqual(['1', '2']);
  });

  it('ends every publish when the connection drops between message and confirm', async () => {
    const publisher = await open();
    const cut = proxy.cutWhen('the last');
    const results = await Promise.allSettled([
      publisher.publish({ ...due(1), body: Buffer.from('the last') }),
      publisher.publish(due(2)),
    ]);
    await cut;
    expect(failuresOf(results)).toEqual(['lost', 'lost']);
  });

  it('refuses at once while there is no broker, and comes back by itself', async () => {
    const { log, lines } = recordLog();
    const publisher = await open({}, log);
    proxy.refuse(true);
    proxy.cut();
    await vi.waitFor(() => expect(publisher.isReady()).toBe(false), PATIENT);
    await expect(publisher.publish(due(1))).rejects.toMatchObject({ failure: 'not_connected' });
    await vi.waitFor(
      () => expect(lines.some(({ event }) => event === 'broker.still_unreachable')).toBe(true),
      PATIENT,
    );
    proxy.refuse(false);
    await vi.waitFor(() => expect(publisher.isReady()).toBe(true), PATIENT);
    await publisher.publish(due(2));
    const told = lines.filter(({ level }) => level !== 'debug').map(({ event }) => event);
    expect(told).toEqual(['broker.connected', 'broker.lost', 'broker.connected']);
  });

  it('starts without a broker and finds it later', async () => {
    proxy.refuse(true);
    const publisher = await open();
    expect(publisher.isReady()).toBe(false);
    proxy.refuse(false);
    await vi.waitFor(() => expect(publisher.isReady()).toBe(true), PATIENT);
    await publisher.publish(due(1));
    expect(await drain(names.deliveries)).toEqual(['1']);
  });

  it('survives a message for an exchange that is not there', async () => {
    const publisher = await open();
    await expect(publisher.publish({ ...due(1), exchange: 'missing' })).rejects.toMatchObject({
      failure: 'lost',
    });
    await vi.waitFor(() => expect(publisher.isReady()).toBe(true), PATIENT);
    await publisher.publish(due(2));
    expect(await drain(names.deliveries)).toEqual(['2']);
  });

  it('tells how much waits in a queue, and of one that is not there nothing', async () => {
    const publisher = await open();
    expect(await publisher.countReady(names.deliveries)).toBe(0);
    await publisher.publish(due(1));
    expect(await publisher.countReady(names.deliveries)).toBe(1);
    expect(await publisher.countReady('missing')).toBeUndefined();
    await publisher.publish(due(2));
    expect(publisher.counters.lost).toBe(0);
  });

  it('finishes what is in flight when it is closed, and takes nothing more', async () => {
    const publisher = await open();
    const publishing = Promise.all(Array.from({ length: 50 }, (_, id) => publisher.publish(due(id))));
    const closing = publisher.close();
    await expect(publisher.publish(due(99))).rejects.toMatchObject({ failure: 'not_connected' });
    await Promise.all([publishing, closing, publisher.close()]);
    expect(await drain(names.deliveries)).toHaveLength(50);
  });
});
