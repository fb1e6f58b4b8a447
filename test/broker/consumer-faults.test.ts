import { describe, expect, it, vi } from 'vitest';
import type { ConsumerOptions } from '../../src/broker/consumer.ts';
import type { Incoming } from '../../src/broker/incoming.ts';
import { type Outgoing, PublishError, SetAsideFullError } from '../../src/broker/outgoing.ts';
import { setAside } from '../../src/broker/set-aside.ts';
import { encodeWakeUp, parseWakeUp } from '../../src/domain/wakeup.ts';
import { gate, numbered, PATIENT, setUpConsuming } from '../support/consuming.ts';
import { recordLog } from '../support/recorded-log.ts';

const VALID = encodeWakeUp({ deliveryId: 'dlv_01h2xcejqtf2nbrexx3vqjhp41', attempt: 1 });
const on = setUpConsuming();

/** Handles everything but what is forged: that finds no room until some is made. */
function partly(done: string[]): ConsumerOptions['handle'] & { makeRoom(): void } {
  let isFull = true;
  const handle = async ({ body }: Incoming): Promise<void> => {
    if (isFull && String(body) === 'forged')
      throw new SetAsideFullError('poison', new PublishError('nacked', 'refused'));
    done.push(String(body));
  };
  return Object.assign(handle, {
    makeRoom() {
      isFull = false;
    },
  });
}

describe('a consumer that meets a fault', () => {
  it.each([1, 20])('gets past a message nobody understands with a prefetch of %d', async (prefetch) => {
    let valid = 0;
    const consumer = await on.start({
      prefetch,
      handle: async (message) => {
        const wakeUp = parseWakeUp(message.body);
        if ('problem' in wakeUp)
          await setAside(on.publisher, on.names.poison, { message, reason: wakeUp.problem });
        else valid += 1;
      },
    });
    await on.put(VALID, '{"v":1', ...Array.from({ length: 20 }, () => VALID));
    await vi.waitFor(() => expect(consumer.counters.acknowledged).toBe(22), PATIENT);
    expect(valid).toBe(21);
    await consumer.stop();
    expect([await on.countLeft(on.names.deliveries), await on.countLeft(on.names.poison)]).toEqual([0, 1]);
  });

  it('gives a message back after a fault of ours, takes it again, and tells of it once', async () => {
    const { log, lines } = recordLog();
    const counts: (number | undefined)[] = [];
    let failures = 3;
    await on.start({
      log,
      handle: async (message) => {
        counts.push(message.deliveryCount);
        if (failures-- > 0) throw new Error('the database is gone');
      },
    });
    await on.put('x');
    await vi.waitFor(() => expect(counts).toHaveLength(4), PATIENT);
    await vi.waitFor(() => expect(lines.at(-1)?.event).toBe('consumer.recovered'), PATIENT);
    expect(counts.slice(1)).toEqual([1, 2, 3]);
    expect(lines.map(({ event }) => event)).toEqual([
      'broker.connected',
      'consumer.fault',
      'consumer.recovered',
    ]);
    expect(lines[1]?.fields['error']).toMatchObject({ message: 'the database is gone' });
  });

  it('waits out an outage without giving anything back, even over a new connection', async () => {
    let isUp = false;
    let asked = 0;
    const counts: (number | undefined)[] = [];
    const handle = async (message: Incoming): Promise<void> => {
      counts.push(message.deliveryCount);
      if (!isUp) throw new Error('the database is gone');
    };
    const isHealthy = async (): Promise<boolean> => {
      asked += 1;
      if (asked === 2) throw new Error('not even that');
      return isUp;
    };
    const consumer = await on.start({ handle, isHealthy });
    await on.put('x');
    await vi.waitFor(() => expect(asked).toBeGreaterThanOrEqual(3), PATIENT);
    expect(counts).toHaveLength(1);
    expect(consumer.counters.givenBack).toBe(0);
    on.proxy.cut();
    const askedBefore = asked;
    await vi.waitFor(() => expect(asked).toBeGreaterThan(askedBefore), PATIENT);
    expect(counts).toHaveLength(1);
    isUp = true;
    await vi.waitFor(() => expect(counts).toHaveLength(2), PATIENT);
    await consumer.stop();
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
  });

  it('gives messages back in the order they came, whichever failed first', async () => {
    const slow = gate();
    const taken: string[] = [];
    let isWell = false;
    const consumer = await on.start({
      handle: async (message) => {
        taken.push(String(message.body));
        if (isWell) return;
        if (String(message.body) === 'first') await slow.opened;
        throw new Error('the database is gone');
      },
    });
    await on.put('first', 'second');
    await vi.waitFor(() => expect([consumer.isAttached(), consumer.inHand()]).toEqual([false, 1]), PATIENT);
    isWell = true;
    slow.open();
    await vi.waitFor(() => expect(consumer.counters.acknowledged).toBe(2), PATIENT);
    expect(taken).toEqual(['first', 'second', 'first', 'second']);
  });

  it('finishes what works while something else fails', async () => {
    const slow = gate();
    const done: string[] = [];
    let failed = false;
    const consumer = await on.start({
      handle: async (message) => {
        if (String(message.body) === '0' && !failed) {
          failed = true;
          throw new Error('once');
        }
        await slow.opened;
        done.push(String(message.body));
      },
    });
    await on.put(...numbered(5));
    await vi.waitFor(() => expect(failed).toBe(true), PATIENT);
    slow.open();
    await vi.waitFor(() => expect(done).toHaveLength(5), PATIENT);
    await consumer.stop();
    expect(done.sort()).toEqual(numbered(5));
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
  });

  it('waits with a message that finds no room among the poison, and takes the others', async () => {
    const { log, lines } = recordLog();
    const counts: (number | undefined)[] = [];
    const done: string[] = [];
    let isFull = true;
    const publisher = {
      ...on.publisher,
      // What a broker says of a queue that refuses when full.
      publish: (message: Outgoing) =>
        isFull ? Promise.reject(new PublishError('nacked', 'refused')) : on.publisher.publish(message),
    };
    const consumer = await on.start({
      log,
      isHealthy: () => Promise.resolve(false),
      handle: async (message) => {
        if (String(message.body) !== 'forged') return void done.push(String(message.body));
        counts.push(message.deliveryCount);
        await setAside(publisher, on.names.poison, { message, reason: 'no JSON' });
      },
    });
    await on.put('forged', ...numbered(30));
    await vi.waitFor(() => expect(counts).toEqual([undefined, 1]), PATIENT);
    expect(done.sort()).toEqual(numbered(30).sort());
    expect(lines.filter(({ event }) => event === 'consumer.fault')).toEqual([]);
    expect(lines.find(({ event }) => event === 'consumer.parked')?.fields['error']).toMatchObject({
      message: `${on.names.poison} takes no more: look through its queue, and empty it`,
    });
    isFull = false;
    await vi.waitFor(() => expect(consumer.counters.acknowledged).toBe(31), PATIENT);
    await consumer.stop();
    expect([await on.countLeft(on.names.deliveries), await on.countLeft(on.names.poison)]).toEqual([0, 1]);
  });

  it('takes what comes after more messages that find no room than it may have in hand', async () => {
    const done: string[] = [];
    const consumer = await on.start({ prefetch: 4, handle: partly(done) });
    await on.put(...Array.from({ length: 20 }, () => 'forged'), ...numbered(30));
    await vi.waitFor(() => expect(done).toHaveLength(30), PATIENT);
    expect([consumer.isAttached(), consumer.isBlocked()]).toEqual([true, false]);
    await consumer.stop();
    await vi.waitFor(async () => expect(await on.countLeft(on.names.deliveries)).toBe(20), PATIENT);
  });

  it('says that it takes nothing when too many find no room, and takes the others once they do', async () => {
    const done: string[] = [];
    const handle = partly(done);
    const consumer = await on.start({ prefetch: 2, handle });
    await on.put(...Array.from({ length: 60 }, () => 'forged'), ...numbered(5));
    await vi.waitFor(() => expect(consumer.isBlocked()).toBe(true), PATIENT);
    expect(done).toEqual([]);
    handle.makeRoom();
    await vi.waitFor(() => expect(done).toHaveLength(65), PATIENT);
    expect(consumer.isBlocked()).toBe(false);
    await consumer.stop();
    expect(await on.countLeft(on.names.deliveries)).toBe(0);
  });

  it('can be stopped during a fault, and leaves the message to others', async () => {
    const consumer = await on.start({
      handle: () => Promise.reject(new Error('broken')),
      isHealthy: () => Promise.resolve(false),
    });
    await on.put('x');
    await vi.waitFor(() => expect(consumer.counters.taken).toBe(1), PATIENT);
    await consumer.stop();
    await vi.waitFor(async () => expect(await on.countLeft(on.names.deliveries)).toBe(1), PATIENT);
  });
});
