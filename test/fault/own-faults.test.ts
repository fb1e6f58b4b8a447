import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Incoming } from '../../src/broker/incoming.ts';
import { encodeWakeUp } from '../../src/domain/wakeup.ts';
import { openEgress } from '../../src/egress/open.ts';
import { createClockWatch } from '../../src/pipeline/deliver/clock-watch.ts';
import { createDeliverer } from '../../src/pipeline/deliver/deliver.ts';
import { createEndpointCache } from '../../src/pipeline/deliver/endpoint-cache.ts';
import { createSettler } from '../../src/pipeline/deliver/settle.ts';
import { createSecretBox } from '../../src/pipeline/secrets.ts';
import { recordInsteadOfSending } from '../../src/pipeline/shadow/sink.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { findIgnoredVariables } from '../../src/runtime/ignored-variables.ts';
import { findEndpoint } from '../../src/store/endpoints.ts';
import {
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  reaches,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';

const ONE_ATTEMPT = { kind: 'schedule', retry_schedule: [0], max_attempts: 1 };
let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
});

afterAll(() => product.close());

test('what this machine had no connection left for is handed back: no failure of the endpoint, no attempt of the policy', async () => {
  const { pool, announcer, publisher } = product.parts;
  const sockets: Socket[] = [];
  // It takes a request and says nothing.
  const silent = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
  await product.endpoints.create({ name: 'silent', url, policy: ONE_ATTEMPT }, { actor: 'test' });
  const egress = openEgress({ ...product.config.egress, maxSockets: 1 });
  const hanging = egress.send({ url, headers: {}, body: Buffer.from('{}'), timeoutMs: 60_000 });
  await until('the only connection to be in use', () => sockets.length === 1);
  const quiet = new AbortController();
  const box = createSecretBox(product.config.masterKey);
  const settler = createSettler({
    db: pool,
    log: product.recorded.log,
    holder: 'test',
    timeoutMs: 300,
    signal: quiet.signal,
  });
  const deliverer = createDeliverer({
    db: pool,
    log: product.recorded.log,
    publisher,
    announcer,
    poison: 'none',
    endpoints: createEndpointCache(pool, box),
    settler,
    holder: 'test',
    send: egress.send,
    sendToSink: recordInsteadOfSending,
    shadowAll: false,
    timeoutMs: 300,
    leaseMs: 3_000,
    maxWaiting: 100,
    maxPerEndpoint: 32,
    signal: quiet.signal,
    stopping: quiet.signal,
    onEndpointDisabled: () => undefined,
    tellDelivered: () => Promise.resolve(),
  });
  const { deliveryId } = await publishTo(product, { name: 'silent' });
  await deliverer.handle({
    body: encodeWakeUp({ deliveryId, attempt: 1 }),
    properties: { headers: {} },
  } as Incoming);

  const outcome = await outcomeOf(product, deliveryId);
  expect(outcome).toMatchObject({ state: 'due', attempts: [{ outcome: 'unknown', error: 'not_sent' }] });
  const [attempt] = outcome.attempts;
  const restsMs = (attempt?.nextDueAt?.getTime() ?? 0) - (attempt?.finishedAt?.getTime() ?? 0);
  expect(restsMs).toBeGreaterThan(4_000);
  expect(sockets).toHaveLength(1);
  expect(await findEndpoint(pool, 'silent')).toMatchObject({ consecutiveFailures: 0 });
  await egress.close();
  await hanging;
  silent.close();
  await settler.close();
});

test('a secret that no key opens keeps its delivery waiting, and is told as our fault', async () => {
  const destination = await openDestination(product, { policy: ONE_ATTEMPT });
  const { deliveryId } = await publishTo(product, destination);
  const stop = await product.start(['worker'], { ...product.config, masterKey: randomBytes(32) });
  const { attempts } = await until('the attempt to be given back', async () => {
    const outcome = await outcomeOf(product, deliveryId);
    return outcome.attempts[0]?.outcome === 'unknown' && outcome;
  });
  await stop();
  expect(attempts).toMatchObject([{ error: 'not_sent' }]);
  expect(product.recorded.lines.filter((line) => line.event === 'attempt_failed')).toHaveLength(1);
  expect(await findEndpoint(product.parts.pool, destination.name)).toMatchObject({ consecutiveFailures: 0 });
  // Once it can be opened, the one attempt that the policy gives is still there.
  await product.parts.pool.query('update delivery set due_at = now() where delivery_id = $1', [deliveryId]);
  const stopAll = await product.start(['worker', 'reconciler']);
  await reaches(product, deliveryId, 'delivered');
  await stopAll();
  expect(destination.receiver.calls().map((call) => call.attempt)).toEqual([2]);
  await destination.receiver.close();
});

test.each([-300_000, 300_000])(
  'a host whose clock is wrong by %i ms sends in time all the same, and says so',
  async (shiftMs) => {
    const destination = await openDestination(product);
    const dueAt = inMs(2_000);
    const worker = await startProcess(product, 'worker', {
      NODE_OPTIONS: `--import ${join(packageRoot, 'test/fault/soak/shift-clock.mjs')}`,
      SHIFT_CLOCK_MS: String(shiftMs),
      DUEPOST_LOG_FORMAT: 'json',
    });
    const skew = worker.heard(/"event":"clock_skew"/);
    const { deliveryId } = await publishTo(product, destination, {
      deliverAt: dueAt,
      deadlineAt: inMs(20_000),
    });
    const outcome = await reaches(product, deliveryId, 'delivered');
    const ahead = JSON.parse(await skew) as { host_ahead_ms: number };
    await worker.stop();
    expect(Math.abs(ahead.host_ahead_ms - shiftMs)).toBeLessThan(2_000);
    expect(outcome.attempts).toHaveLength(1);
    const [call] = destination.receiver.calls();
    expect(call?.at.getTime()).toBeGreaterThanOrEqual(dueAt.getTime());
    // The receiver refuses signatures that are five minutes off: this one was stamped by the database's clock.
    expect(call?.verified).toBe(true);
    await destination.receiver.close();
  },
);

test('a clock that is off is told once, and once more when it is right again', () => {
  const { log, lines } = recordLog();
  const clock = createClockWatch(log);
  // The last of these is ahead only as far as the answer may have taken.
  for (const [offsetMs, tookMs] of [
    [5, 3],
    [2_500, 3],
    [2_600, 3],
    [-2_600, 3],
    [4_000, 3_900],
    [10, 3],
  ] as const) {
    clock.see(offsetMs, tookMs);
  }
  expect(lines.map((line) => [line.level, line.event, line.fields['host_ahead_ms']])).toEqual([
    ['warn', 'clock_skew', 2_497],
    ['info', 'clock_skew_over', 100],
  ]);
});

test('a worker says by name which variables it does not heed, and delivers without them', async () => {
  const destination = await openDestination(product);
  const worker = await startProcess(product, 'worker', {
    HTTPS_PROXY: 'http://someone:CANARY@127.0.0.1:9',
    HTTP_PROXY: 'http://someone:CANARY@127.0.0.1:9',
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    DUEPOST_LOG_FORMAT: 'json',
  });
  const line = await worker.heard(/"event":"variables_ignored"/);
  expect(JSON.parse(line)).toMatchObject({
    level: 'warn',
    variables: ['HTTPS_PROXY', 'HTTP_PROXY', 'NODE_TLS_REJECT_UNAUTHORIZED'],
  });
  expect(line).not.toContain('CANARY');
  const { deliveryId } = await publishTo(product, destination);
  await reaches(product, deliveryId, 'delivered');
  await worker.stop();
  await destination.receiver.close();
});

test('variables that change nothing are not told of', () => {
  expect(findIgnoredVariables({ NODE_TLS_REJECT_UNAUTHORIZED: '1', https_proxy: '', NO_PROXY: '*' })).toEqual(
    [],
  );
});
