import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { type Destination, openDestination } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday } from '../support/reminders.ts';

let product: TestProduct;
let destination: Destination;
let client: AmqpClient;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['ingress'] });
  destination = await openDestination(product);
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  await destination.receiver.close();
  await product.close();
});

type Command = readonly [routingKey: string, body: object];

/** Publishes commands one right after the other, and gives their answers when all are there. */
function publishAll(commands: readonly Command[]): Promise<Record<string, unknown>[]> {
  return Promise.all(
    commands.map(([routingKey, body]) =>
      client.call(routingKey, Buffer.from(JSON.stringify({ v: 1, ...body })), { messageId: randomUUID() }),
    ),
  );
}

const contracts = (prefix: string): string[] => Array.from({ length: 50 }, (_, n) => `${prefix}-${n}`);

const schedule = (contract: string): Command => [
  'reminder.schedule',
  {
    contract_ref: contract,
    endpoint: destination.name,
    renewal_date: daysFromToday(90),
    notice_period: 'P30D',
    jurisdiction: '24x7',
    time_zone: 'UTC',
  },
];

const moveTo = (contract: string, days: number): Command => [
  'reminder.reschedule',
  { contract_ref: contract, renewal_date: daysFromToday(days) },
];

const cancel = (contract: string): Command => [
  'reminder.cancel',
  { contract_ref: contract, reason: 'the car was sold' },
];

interface Story {
  readonly state: string;
  readonly renewal_date: string;
  readonly trail: string[];
}

/** What became of the contracts whose names begin so, whatever the answers said. */
async function storiesOf(prefix: string): Promise<Story[]> {
  const { rows } = await product.parts.pool.query<Story>(
    `select d.state, r.renewal_date::text,
            (select array_agg(t.event order by t.entry) from trail t where t.delivery_id = d.delivery_id) as trail
       from reminder r
       join delivery d on d.delivery_id = r.delivery_id
      where r.contract_ref like $1`,
    [`${prefix}-%`],
  );
  return rows;
}

test('a reminder that is scheduled and cancelled in one breath is cancelled', async () => {
  const answers = await publishAll(contracts('sold').flatMap((c) => [schedule(c), cancel(c)]));
  expect(answers.filter(({ ok }) => ok !== true)).toEqual([]);
  expect(await storiesOf('sold')).toEqual(
    contracts('sold').map(() => ({
      state: 'cancelled',
      renewal_date: daysFromToday(90),
      trail: ['schedule', 'cancel'],
    })),
  );
});

test('of two moves in one breath the later is in force', async () => {
  await publishAll(contracts('moved').map(schedule));
  const answers = await publishAll(contracts('moved').flatMap((c) => [moveTo(c, 120), moveTo(c, 150)]));
  expect(answers.map(({ renewal_date }) => renewal_date)).toEqual(
    contracts('moved').flatMap(() => [daysFromToday(120), daysFromToday(150)]),
  );
  expect(await storiesOf('moved')).toEqual(
    contracts('moved').map(() => ({
      state: 'due',
      renewal_date: daysFromToday(150),
      trail: ['schedule', 'reschedule', 'reschedule'],
    })),
  );
});
