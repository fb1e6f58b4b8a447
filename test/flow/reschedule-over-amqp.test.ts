import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { openAmqpClient } from '../support/amqp-client.ts';
import { drainQueue, takeMessage } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday } from '../support/reminders.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let receiver: PracticeReceiver;

beforeAll(async () => {
  receiver = await startPracticeReceiver({ answers: [200] });
  product = await openTestProduct({ roles: ['ingress', 'worker'] });
  const { secret } = await product.endpoints.create(
    { name: 'notices', url: receiver.url },
    { actor: 'test' },
  );
  receiver.setSecrets([secret]);
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

type Answer = Record<string, unknown> & { readonly error?: { readonly code: string } };

/** Sends commands one after the other as another service would, and gives their answers. */
async function command(...commands: readonly (readonly [string, object])[]): Promise<Answer[]> {
  const { config } = product.broker;
  const answers: Answer[] = [];
  await withConnection(config, 'test', async (connection) => {
    const channel = await connection.createConfirmChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true });
    await channel.consume(
      queue,
      (message) => message && answers.push(JSON.parse(message.content.toString())),
      {
        noAck: true,
      },
    );
    for (const [routingKey, body] of commands) {
      const expected = answers.length + 1;
      channel.publish(
        namesOf(config.prefix).commands,
        routingKey,
        Buffer.from(JSON.stringify({ v: 1, ...body })),
        { replyTo: queue, messageId: randomUUID() },
      );
      await until(`the answer to ${routingKey}`, () => answers.length >= expected);
    }
    await channel.close();
  });
  return answers;
}

function renewal(contractRef: string, days: number): object {
  return {
    contract_ref: contractRef,
    endpoint: 'notices',
    renewal_date: daysFromToday(days),
    notice_period: 'P30D',
    jurisdiction: '24x7',
    time_zone: 'UTC',
    payload: { premium: 12 },
  };
}

test('a reminder that is moved to now is sent once with its new date, and told as delivered afterwards', async () => {
  const [scheduled, moved] = await command(
    ['reminder.schedule', renewal('pol-7781', 90)],
    ['reminder.reschedule', { contract_ref: 'pol-7781', renewal_date: daysFromToday(30) }],
  );
  expect(moved).toMatchObject({
    ok: true,
    applied: 'full',
    reminder_id: scheduled?.['reminder_id'],
    renewal_date: daysFromToday(30),
    revision: 2,
  });
  const call = await until('the call', () =>
    receiver.calls().find((c) => c.deliveryId === scheduled?.['delivery_id']),
  );
  expect(call.attempt).toBe(1);
  await until('the delivery', async () => {
    const found = await product.parts.pool.query(
      `select from audit_record where delivery_id = $1 and state = 'delivered' and revision = 2`,
      [scheduled?.['delivery_id']],
    );
    return found.rowCount === 1;
  });
  const [again] = await command([
    'reminder.reschedule',
    { reminder_id: scheduled?.['reminder_id'], renewal_date: daysFromToday(60) },
  ]);
  expect(again).toMatchObject({ ok: false, error: { code: 'already_delivered' } });
  expect(receiver.effects()).toHaveLength(1);
});

test.each([
  ['reminder.reschedule', { renewal_date: daysFromToday(60) }],
  ['reminder.cancel', { reason: 'sold' }],
])(
  'a %s without a key is refused and set aside; message_id is one, if it has the form',
  async (name, body) => {
    const client = await openAmqpClient(product);
    const contract = `pol-${name}`;
    await command(['reminder.schedule', renewal(contract, 90)]);
    const { commandsRejected } = namesOf(product.config.broker.prefix);
    await drainQueue(product, commandsRejected);
    const call = (properties: { messageId?: string }, more = {}) =>
      client.call(
        name,
        Buffer.from(JSON.stringify({ v: 1, contract_ref: contract, ...body, ...more })),
        properties,
      );

    expect(await call({})).toMatchObject({
      ok: false,
      error: { code: 'idempotency_key_missing', errors: [{ path: '/idempotency_key' }] },
    });
    const aside = await takeMessage(product, commandsRejected);
    expect(aside.properties.headers?.['x-duepost-error']).toMatch(/^idempotency_key_missing: /);
    expect(await call({ messageId: 'no key' })).toMatchObject({ error: { code: 'invalid_request' } });
    expect(await call({ messageId: 'a-key' })).toMatchObject({ ok: true });
    expect(await call({}, { idempotency_key: 'a-key' })).toMatchObject({ ok: true });
    await client.close();
  },
);

test('a reminder that is cancelled is told so; one that nobody knows is refused with the reason', async () => {
  const [, cancelled, unknown, nothing] = await command(
    ['reminder.schedule', renewal('pol-7782', 90)],
    ['reminder.cancel', { contract_ref: 'pol-7782', reason: 'contract ended' }],
    ['reminder.cancel', { contract_ref: 'pol-0', reason: 'contract ended' }],
    ['reminder.reschedule', { contract_ref: 'pol-7782' }],
  );
  expect(cancelled).toMatchObject({ ok: true, state: 'cancelled', contract_ref: 'pol-7782' });
  expect(unknown?.error?.code).toBe('ambiguous_reference');
  expect(nothing?.error?.code).toBe('invalid_request');
});
