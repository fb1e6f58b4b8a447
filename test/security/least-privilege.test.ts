import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { type RunningCli, startCli } from '../support/cli.ts';
import { type Destination, openDestination, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

const name = `p_${randomBytes(6).toString('hex')}`;
let product: TestProduct;
let destination: Destination;
let client: AmqpClient;
let asApplication: string;
let running: RunningCli | undefined;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
  client = await openAmqpClient(product);
  await product.database.pool.query(`create role ${name} login password '${name}'`);
  await product.database.pool.query('select grant_to_application($1)', [name]);
  const url = new URL(product.database.url);
  url.username = name;
  url.password = name;
  asApplication = url.href;
});

afterAll(async () => {
  running?.child.kill('SIGTERM');
  await running?.ended;
  await client.close();
  await destination.receiver.close();
  await atBroker('DELETE', `users/${name}`);
  await product.database.pool.query(`drop owned by ${name}`);
  await product.database.pool.query(`drop role ${name}`);
  await product.close();
});

/** The management API; a broker without it has no users to make. */
async function atBroker(method: string, path: string, body?: object): Promise<void> {
  const base = new URL(product.config.broker.managementUrl ?? '');
  const answer = await fetch(`${base.origin}/api/${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(`${base.username}:${base.password}`).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok && answer.status !== 404) throw new Error(`${method} ${path}: ${answer.status}`);
}

test('every role works with the rights of docs/security.md, and no more', async () => {
  const { prefix } = product.config.broker;
  await atBroker('PUT', `users/${name}`, { password: name, tags: '' });
  await atBroker('PUT', `permissions/%2F/${name}`, {
    configure: '^$',
    write: `^(${prefix}\\.|amq\\.default$)`,
    read: `^${prefix}\\.`,
  });
  const amqp = new URL(product.broker.config.url);
  amqp.username = name;
  amqp.password = name;
  running = startCli(['start'], {
    ...product.env,
    DUEPOST_DATABASE_URL: asApplication,
    DUEPOST_AMQP_URL: amqp.href,
    DUEPOST_MANAGEMENT_URL: '',
    DUEPOST_LOG_FORMAT: 'json',
  });
  await running.says('"event":"started"');
  const command = { v: 1, type: 'order.created', payload: {}, endpoint: destination.name };
  const answer = await client.call('event.publish', Buffer.from(JSON.stringify(command)), {
    messageId: 'rights',
  });
  const [delivery] = answer['deliveries'] as { delivery_id: string }[];
  await reaches(product, delivery?.delivery_id ?? '', 'delivered');
  running.child.kill('SIGTERM');
  const { code, stderr } = await running.ended;
  expect(code).toBe(0);
  expect(stderr.split('\n').filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test.each([
  ['change the trail', `update trail set detail = '{}'`],
  ['remove an audit record', 'delete from audit_record'],
  ['empty the trail', 'truncate trail'],
  ['take off a guard', 'alter table trail disable trigger all'],
  ['forget an operation', 'delete from operation'],
  ['remove attempts', 'delete from attempt'],
])('the application may not %s', async (_, statement) => {
  const db = new pg.Client({ connectionString: asApplication });
  await db.connect();
  await expect(db.query(statement)).rejects.toMatchObject({ code: '42501' });
  await db.end();
});
