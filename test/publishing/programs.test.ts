import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { drainQueue } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday } from '../support/reminders.ts';
import { until } from '../support/until.ts';
import { findPrograms, runProgram } from './program.ts';

let product: TestProduct;
/** Nobody takes its commands, unless a test says so. */
let silent: TestProduct;

beforeAll(async () => {
  [product, silent] = await Promise.all([openTestProduct({ roles: ['ingress'] }), openTestProduct()]);
  for (const { endpoints } of [product, silent])
    await endpoints.create({ name: 'customer-notices', url: 'http://127.0.0.1:8099/' }, { actor: 'test' });
});

afterAll(() => Promise.all([product.close(), silent.close()]));

const eventOf = (key: string, payload: string): string =>
  `{"v":1,"idempotency_key":"${key}","type":"order.created","payload":${payload}}`;

async function storedBodies(of: TestProduct, key: string): Promise<string[]> {
  const { rows } = await of.parts.pool.query<{ text: string }>(
    `select convert_from(b.bytes, 'UTF8') as text
       from event e join body b on b.source_id = e.event_id where e.idempotency_key = $1`,
    [key],
  );
  return rows.map((row) => row.text);
}

describe.each(findPrograms())('the $language program of examples/publishing', (program) => {
  const key = `ord-${program.language}`;

  test('is told the ids of what it scheduled, and the same ids when it sends the same again', async () => {
    const command = JSON.stringify({
      v: 1,
      idempotency_key: `pol-7781-${program.language}`,
      contract_ref: `pol-7781-${program.language}`,
      endpoint: 'customer-notices',
      renewal_date: daysFromToday(300),
      notice_period: 'P30D',
      jurisdiction: 'DE-BY',
      payload: { premium: 412.5 },
    });
    const first = await runProgram(program, product, { routingKey: 'reminder.schedule', command });
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const again = await runProgram(program, product, { routingKey: 'reminder.schedule', command });
    const answers = [first, again].map(({ stdout }) => JSON.parse(stdout));
    expect(answers[0]).toMatchObject({ ok: true, duplicate: false, state: 'due' });
    expect(answers[1]).toEqual({ ...answers[0], duplicate: true });
  });

  test('sends the bytes it was given, numbers beyond 2^53 among them', async () => {
    const command = eventOf(key, '{"id":9007199254740993,"sum":1.10}');
    expect(await runProgram(program, product, { routingKey: 'event.publish', command })).toMatchObject({
      code: 0,
    });
    expect(await storedBodies(product, key)).toEqual([
      expect.stringContaining('"data":{"id":9007199254740993,"sum":1.10}'),
    ]);
  });

  test('ends with 65 and the reason when it is refused, and does not ask again', async () => {
    const run = (command: string) => runProgram(program, product, { routingKey: 'event.publish', command });
    const reused = await run(eventOf(key, '"other"'));
    expect(reused).toMatchObject({ code: 65, stderr: '' });
    expect(JSON.parse(reused.stdout)).toMatchObject({
      ok: false,
      error: { code: 'idempotency_key_reused' },
    });
    const wrong = await run('{"v":1,"idempotency_key":"wrong","type":"order.created","paylaod":1}');
    expect(JSON.parse(wrong.stdout).error.errors.map((e: { path: string }) => e.path)).toEqual(
      expect.arrayContaining(['/payload', '/paylaod']),
    );
    const rejected = await drainQueue(product, namesOf(product.config.broker.prefix).commandsRejected);
    expect(rejected.map(({ properties }) => properties.messageId)).toEqual([key, 'wrong']);
  });

  test.each(['', 'nonsense', 'null', '{"idempotency_key":1}'])(
    'ends with 64 and a line when given %j',
    async (command) => {
      const result = await runProgram(program, product, { routingKey: 'event.publish', command });
      expect(result).toEqual({ code: 64, stdout: '', stderr: expect.stringMatching(/^usage: .*\n$/) });
    },
  );

  test('asks again with the same bytes and key while nobody answers, and it is one event', async () => {
    const silentKey = `silent-${program.language}`;
    const { commandsQueue } = namesOf(silent.config.broker.prefix);
    const command = eventOf(silentKey, '1');
    const asking = runProgram(program, silent, {
      routingKey: 'event.publish',
      command,
      variables: { ANSWER_SECONDS: '3' },
    });
    await until('a second try', async () => (await silent.parts.publisher.countReady(commandsQueue)) === 2);
    const stop = await silent.start(['ingress']);
    const { code, stdout, stderr } = await asking;
    expect(stderr).toMatch(/^try 1 of 5: .*no answer in time/);
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ ok: true, duplicate: true })]);
    expect(await storedBodies(silent, silentKey)).toHaveLength(1);
    await stop();
  });

  test('ends with 75 when nobody answers at all; what it sent is kept: persistent, with key and way back', async () => {
    const { commandsQueue } = namesOf(silent.config.broker.prefix);
    const command = eventOf(`unheard-${program.language}`, '1');
    const variables = { ANSWER_SECONDS: '0.5' };
    const result = await runProgram(program, silent, { routingKey: 'event.publish', command, variables });
    expect([result.code, result.stdout]).toEqual([75, '']);
    const messages = await drainQueue(silent, commandsQueue);
    expect(messages.length).toBeGreaterThan(0);
    for (const { content, fields, properties } of messages) {
      expect([fields.routingKey, content.toString()]).toEqual(['event.publish', command]);
      expect(properties).toMatchObject({
        deliveryMode: 2,
        contentType: 'application/json',
        messageId: `unheard-${program.language}`,
        replyTo: expect.stringMatching(/^amq\.rabbitmq\.reply-to\./),
      });
    }
    expect(new Set(messages.map(({ properties }) => properties.correlationId)).size).toBe(messages.length);
  });

  test('says so when no queue takes what it sends', async () => {
    const result = await runProgram(program, silent, {
      routingKey: 'event.publish',
      command: eventOf('lost', '1'),
      variables: {
        ANSWER_SECONDS: '1',
        DUEPOST_COMMANDS: namesOf(silent.config.broker.prefix).notifications,
      },
    });
    expect([result.code, result.stdout]).toEqual([75, '']);
    expect(result.stderr).toMatch(/no queue|Unroutable/);
  });
});

test('a reply over the direct way back is no warning in the log', () => {
  expect(product.recorded.lines.filter(({ event }) => event === 'reply_not_delivered')).toEqual([]);
});
