import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import { startCli } from '../support/cli.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let receiver: PracticeReceiver;

beforeAll(async () => {
  product = await openTestProduct();
  receiver = await startPracticeReceiver({ answers: ['hang'] });
  await product.endpoints.create({ name: 'hangs', url: receiver.url }, { actor: 'test' });
});

afterAll(async () => {
  await receiver.close();
  await product.close();
});

const PATIENT = { DUEPOST_EGRESS_TIMEOUT_MS: '60000', DUEPOST_SHUTDOWN_MS: '60000' };

test('all roles in one process end with 0 when nothing is in hand', async () => {
  const running = startCli(['start'], product.env);
  await running.says('started');
  running.child.kill('SIGTERM');
  const { code, stderr } = await running.ended;
  expect(code).toBe(0);
  expect(stderr).toContain('stopped');
});

test('a stop is forced when its time is over: exit code 1', async () => {
  const running = startCli(['start'], { ...product.env, ...PATIENT, DUEPOST_SHUTDOWN_MS: '0' });
  await hang('forced');
  running.child.kill('SIGTERM');
  expect((await running.ended).code).toBe(1);
});

test('a second signal ends it at once: exit code 1', async () => {
  const running = startCli(['start'], { ...product.env, ...PATIENT });
  await hang('twice');
  running.child.kill('SIGTERM');
  await running.says('stopping');
  running.child.kill('SIGINT');
  expect((await running.ended).code).toBe(1);
});

test('a start that waits for a silent database can be ended', async () => {
  const silent = await listenSilently();
  const { port } = silent.address() as { port: number };
  const url = `postgres://127.0.0.1:${port}/x`;
  const running = startCli(['start'], { ...product.env, DUEPOST_DATABASE_URL: url });
  await until('the connection', async () => (await connectionsOf(silent)) > 0);
  running.child.kill('SIGTERM');
  await running.says('stopping');
  running.child.kill('SIGTERM');
  expect((await running.ended).code).toBe(1);
  silent.close();
});

/** Publishes, and waits until the call hangs. */
async function hang(key: string): Promise<void> {
  const before = receiver.calls().length;
  await product.events.publish({
    idempotencyKey: key,
    type: 'order.created',
    payload: {},
    endpoint: 'hangs',
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: 'test',
  });
  await until('the call', () => receiver.calls().length > before);
}

function listenSilently(): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.on('error', () => undefined));
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
