import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Incoming } from '../../src/broker/incoming.ts';
import { SetAsideFullError } from '../../src/broker/outgoing.ts';
import { createCommandReader } from '../../src/commands/handle.ts';
import { commandHandlers, subjectOf } from '../../src/commands/handlers.ts';
import { createTurns } from '../../src/commands/turns.ts';
import { createReminderAcceptor } from '../../src/pipeline/accept/reminders.ts';
import { openCalendars } from '../../src/roles/parts.ts';
import type { Queryable } from '../../src/store/pool.ts';
import { gate, PATIENT, setUpConsuming } from '../support/consuming.ts';
import { type Destination, openDestination } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordLog } from '../support/recorded-log.ts';
import { daysFromToday } from '../support/reminders.ts';

describe('commands about different contracts', () => {
  let product: TestProduct;
  let destination: Destination;

  beforeAll(async () => {
    product = await openTestProduct();
    destination = await openDestination(product);
  });

  afterAll(async () => {
    await destination.receiver.close();
    await product.close();
  });

  const scheduling = (n: number): Incoming => ({
    body: Buffer.from(
      JSON.stringify({
        v: 1,
        idempotency_key: `burst-${n}`,
        contract_ref: `pol-${n}`,
        endpoint: destination.name,
        renewal_date: daysFromToday(90),
        notice_period: 'P30D',
        jurisdiction: '24x7',
        time_zone: 'UTC',
      }),
    ),
    routingKey: 'reminder.schedule',
    exchange: '',
    properties: { headers: {} },
    redelivered: false,
  });

  it('are stored together when they come together', async () => {
    const { pool, publisher, announcer } = product.parts;
    const inserted: unknown[] = [];
    const db: Queryable = {
      query(query) {
        if (query.name === 'insert_reminders') inserted.push(query);
        return pool.query(query);
      },
    };
    const reminders = createReminderAcceptor({
      db,
      announcer,
      calendars: openCalendars(product.config),
      timeoutMs: product.config.egress.timeoutMs,
    });
    const read = createCommandReader({
      publisher,
      log: recordLog().log,
      rejected: 'nothing is rejected here',
      prefix: product.config.broker.prefix,
      maxBodyBytes: 10_000,
      handlers: commandHandlers({
        reminders,
        events: product.events,
        rescheduler: {} as never,
        maxPayloadBytes: 1_000,
      }),
      subjectOf,
    });
    await Promise.all(Array.from({ length: 200 }, (_, n) => read(scheduling(n))));
    await reminders.close();
    const { rows } = await pool.query(`select count(*)::int from reminder where contract_ref like 'pol-%'`);
    expect(rows).toEqual([{ count: 200 }]);
    expect(inserted).toHaveLength(1);
  });
});

describe('a command that meets a fault of ours', () => {
  const on = setUpConsuming();

  it('is carried out before those that came after it all the same', async () => {
    const begun: string[] = [];
    const done: string[] = [];
    const slow = gate();
    let faults = 1;
    const read = createCommandReader({
      publisher: on.publisher,
      log: recordLog().log,
      rejected: on.names.commandsRejected,
      prefix: on.config.prefix,
      maxBodyBytes: 1_000,
      // The key under which due wake-ups come.
      handlers: {
        now: async ({ step }) => {
          begun.push(String(step));
          await slow.opened;
          if (step === 'schedule' && faults-- > 0) throw new Error('the database is gone');
          done.push(String(step));
          return {};
        },
      },
      subjectOf: (_, { contract }) => String(contract),
    });
    const consumer = await on.start({ handle: read });
    const steps = ['schedule', 'reschedule', 'cancel'];
    await on.put(...steps.map((step) => JSON.stringify({ v: 1, contract: 'pol-1', step })));
    await vi.waitFor(() => expect(consumer.inHand()).toBe(3), PATIENT);
    slow.open();
    await vi.waitFor(() => expect(consumer.counters.acknowledged).toBe(3), PATIENT);
    expect(begun).toEqual(['schedule', ...steps]);
    expect(done).toEqual(steps);
  });
});

describe('turns', () => {
  it('go on after a refusal that finds no room where it is set aside', async () => {
    const takeTurn = createTurns();
    const done: string[] = [];
    const full = new SetAsideFullError('rejected', new Error('full') as never);
    const refused = takeTurn('pol-1', () => Promise.reject(full));
    const next = takeTurn('pol-1', async () => void done.push('next'));
    await expect(refused).rejects.toBe(full);
    await next;
    expect(done).toEqual(['next']);
  });
});
