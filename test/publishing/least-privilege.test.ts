import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseBrokerUrl } from '../../src/broker/broker-url.ts';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { findPrograms, runProgram } from './program.ts';

const USER = `orders-${randomBytes(4).toString('hex')}`;
const PASSWORD = randomBytes(8).toString('hex');
const MANAGEMENT_URL = process.env['DUEPOST_MANAGEMENT_URL'] ?? '';
let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['ingress'] });
});

afterAll(() => product.close());

async function manage(method: 'PUT' | 'DELETE', path: string, body?: object): Promise<void> {
  const { origin, username, password } = new URL(MANAGEMENT_URL);
  const response = await fetch(`${origin}/api/${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`);
}

/** What the broker says to something that the producer should not be able to do. */
async function attempt(url: string, act: (channel: Channel) => Promise<unknown>): Promise<string> {
  return withConnection({ ...product.config.broker, url }, 'test', async (connection) => {
    const channel = await connection.createConfirmChannel();
    const ended = new Promise<string>((resolve) =>
      channel.once('error', (error: Error) => resolve(error.message)),
    );
    return act(channel).then(
      () => 'allowed',
      () => ended,
    );
  });
}
type Channel = Parameters<Parameters<typeof withConnection>[2]>[0] extends {
  createConfirmChannel(): Promise<infer C>;
}
  ? C
  : never;

test('a user that may only write to the exchange of commands is enough, and may do nothing else', async () => {
  if (MANAGEMENT_URL === '') {
    process.stderr.write('no DUEPOST_MANAGEMENT_URL: no user can be made to show what it may do\n');
    return;
  }
  const { commands, commandsQueue, wake, deliveries } = namesOf(product.config.broker.prefix);
  const url = new URL(product.config.broker.url);
  const vhost = encodeURIComponent(parseBrokerUrl(url.href).vhost);
  [url.username, url.password] = [USER, PASSWORD];
  await manage('PUT', `users/${USER}`, { password: PASSWORD, tags: '' });
  try {
    await manage('PUT', `permissions/${vhost}/${USER}`, {
      configure: '^$',
      write: `^${commands.replaceAll('.', '\\.')}$`,
      read: '^$',
    });
    await manage('PUT', `topic-permissions/${vhost}/${USER}`, {
      exchange: commands,
      write: '^event\\.publish$',
      read: '^$',
    });

    const command = '{"v":1,"idempotency_key":"ord-1","type":"order.created","payload":{}}';
    const variables = { AMQP_URL: url.href, ANSWER_SECONDS: '2' };
    for (const program of findPrograms()) {
      const result = await runProgram(program, product, { routingKey: 'event.publish', command, variables });
      expect(result).toMatchObject({ code: 0, stderr: '' });
      const beyond = await runProgram(program, product, {
        routingKey: 'reminder.cancel',
        command,
        variables,
      });
      expect(beyond).toMatchObject({
        code: 77,
        stdout: '',
        stderr: expect.stringMatching(/^forbidden: .*ACCESS.REFUSED.*\n$/),
      });
      const stranger = new URL(url);
      stranger.password = 'wrong';
      const outside = new URL(url);
      outside.pathname = '/nowhere';
      for (const AMQP_URL of [stranger.href, outside.href]) {
        const variablesOf = { ...variables, AMQP_URL };
        expect(
          await runProgram(program, product, {
            routingKey: 'event.publish',
            command,
            variables: variablesOf,
          }),
        ).toMatchObject({ code: 77, stdout: '', stderr: expect.stringMatching(/^forbidden: .*\n$/) });
      }
    }

    const publishTo = (exchange: string, key: string) => async (channel: Channel) => {
      channel.publish(exchange, key, Buffer.from('{}'));
      await channel.waitForConfirms();
    };
    const refused = expect.stringContaining('ACCESS_REFUSED');
    expect(await attempt(url.href, (channel) => channel.assertQueue(`${commands}.mine`))).toEqual(refused);
    expect(await attempt(url.href, (channel) => channel.consume(commandsQueue, () => {}))).toEqual(refused);
    expect(await attempt(url.href, publishTo(wake, 'now'))).toEqual(refused);
    expect(await attempt(url.href, publishTo('', deliveries))).toEqual(refused);
  } finally {
    await manage('DELETE', `users/${USER}`);
  }
});
