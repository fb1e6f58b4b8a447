import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { commandHandlers } from '../../src/commands/handlers.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { keys } from '../evidence/support.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { type Destination, drainQueue, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday } from '../support/reminders.ts';
import { until } from '../support/until.ts';
import { asyncApiDocument } from './asyncapi.ts';

type Json = ReturnType<typeof JSON.parse>;

const document: Json = asyncApiDocument();
const ajv = new Ajv({ strict: false, allErrors: true });
addFormats.default(ajv);

/** What is wrong with a message by the document. */
function faultsOf(message: string, body: unknown): readonly unknown[] {
  const validate = ajv.compile(document.components.messages[message].payload);
  return validate(body) ? [] : (validate.errors ?? []);
}

test('the document is the one in docs/asyncapi.json', async () => {
  // After a change of what is said over the broker: npx vitest run test/publishing/asyncapi.test.ts -u
  const text = `${JSON.stringify(document, undefined, 2)}\n`;
  await expect(text).toMatchFileSnapshot(join(packageRoot, 'docs/asyncapi.json'));
});

test('the document is AsyncAPI 3.0', async () => {
  const require = createRequire(import.meta.url);
  const path = require.resolve('@asyncapi/specs/schemas/3.0.0-without-$id.json');
  const specification = new Ajv({ strict: false, allErrors: true, logger: false });
  addFormats.default(specification);
  const validate = specification.compile(JSON.parse(await readFile(path, 'utf8')));
  expect(validate(document) ? [] : validate.errors).toEqual([]);
});

test('every reference in the document leads somewhere', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
    (m) => m[1] as string,
  );
  expect(references.length).toBeGreaterThan(40);
  for (const reference of references) {
    const target = reference.split('/').reduce<Json>((at, step) => at?.[step], document);
    expect(target, reference).toBeDefined();
  }
});

test('it has every command that is taken, and no other', () => {
  const received = Object.values<Json>(document.operations)
    .filter((operation) => operation.action === 'receive' && operation.reply !== undefined)
    .map((operation) => document.channels[operation.channel.$ref.split('/').at(-1)].address);
  expect(new Set(received)).toEqual(new Set(Object.keys(commandHandlers({} as never))));
});

describe('what is really said', () => {
  let product: TestProduct;
  let client: AmqpClient;
  let refusing: Destination;

  beforeAll(async () => {
    product = await openTestProduct({
      roles: ['ingress', 'worker', 'reconciler'],
      env: { ...QUICK, DUEPOST_SEALING_KEY: keys.privateKey, DUEPOST_SEALING_INTERVAL_MS: '100' },
    });
    client = await openAmqpClient(product);
    refusing = await openDestination(product, { answers: [200, 410] });
  });

  afterAll(async () => {
    await client.close();
    await refusing.receiver.close();
    await product.close();
  });

  test('answers are as the document has them', async () => {
    const { endpoint } = await product.endpoints.create(
      { name: 'elsewhere', url: 'http://127.0.0.1:8099/' },
      { actor: 'test' },
    );
    const send = (routingKey: string, body: object) =>
      client.call(routingKey, Buffer.from(JSON.stringify({ v: 1, ...body })), {
        messageId: `${routingKey}-1`,
      });
    const reminder = {
      idempotency_key: 'rem-1',
      contract_ref: 'pol-1',
      endpoint: endpoint.name,
      renewal_date: daysFromToday(300),
      notice_period: 'P30D',
      jurisdiction: 'DE-BY',
    };
    const event = { idempotency_key: 'evt-1', type: 'order.created', payload: {}, endpoint: endpoint.name };
    const moved = { contract_ref: 'pol-1', renewal_date: daysFromToday(310) };
    for (const [message, routingKey, body] of [
      ['reminderScheduleAccepted', 'reminder.schedule', reminder],
      ['reminderRescheduleAccepted', 'reminder.reschedule', moved],
      ['reminderCancelAccepted', 'reminder.cancel', { contract_ref: 'pol-1', reason: 'sold' }],
      ['eventPublishAccepted', 'event.publish', event],
      ['refused', 'event.publish', { ...event, payload: 'other' }],
      ['refused', 'no.such', {}],
    ] as const) {
      const answer = await send(routingKey, body);
      expect(faultsOf(message, answer), JSON.stringify(answer)).toEqual([]);
      const other = message === 'refused' ? 'eventPublishAccepted' : 'refused';
      expect(faultsOf(other, answer)).not.toEqual([]);
    }
  });

  test('notifications, notices and wake-ups are as the document has them', async () => {
    const names = namesOf(product.config.broker.prefix);
    const heard = new Map<string, unknown>();
    await withConnection(product.config.broker, 'a listener', async (connection) => {
      const channel = await connection.createChannel();
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, names.notifications, '#');
      await channel.bindQueue(queue, names.wake, 'now');
      await channel.consume(
        queue,
        (message) => {
          if (message === null) return;
          heard.set(message.fields.routingKey, JSON.parse(message.content.toString()));
        },
        { noAck: true },
      );
      await product.endpoints.pause(refusing.name, { actor: 'test' });
      await product.endpoints.resume(refusing.name, { actor: 'test' });
      for (const state of ['delivered', 'dead_lettered']) {
        const { deliveryId } = await publishTo(product, refusing);
        await reaches(product, deliveryId, state);
      }
      await until('all of them', () => heard.size === 7);
    });
    expect([...heard.keys()].toSorted()).toEqual([
      'audit.sealed',
      'delivery.dead_lettered',
      'delivery.delivered',
      'endpoint.disabled',
      'endpoint.paused',
      'endpoint.resumed',
      'now',
    ]);
    for (const [key, body] of heard) {
      const channel = Object.values<Json>(document.channels).find(({ address }) => address === key);
      expect(faultsOf(key === 'now' ? 'wakeUp' : (Object.keys(channel.messages)[0] as string), body)).toEqual(
        [],
      );
    }
    const [notice] = await until('the notice', async () => {
      const kept = await drainQueue(product, names.deadLetters);
      return kept.length > 0 && kept;
    });
    expect(faultsOf('deadLetterNotice', JSON.parse(String(notice?.content)))).toEqual([]);
  });
});
