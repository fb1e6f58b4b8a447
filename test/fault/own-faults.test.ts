import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClockWatch } from '../../src/pipeline/clock-watch.ts';
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
/** Calls that may be under way to one host and port. */
const MOST_SOCKETS = 64;
/** Of 32 per endpoint an eighth is kept for what is near its deadline. */
const PER_ENDPOINT = 28;
let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
});

afterAll(() => product.close());

test('what this machine had no connection left for is handed back: no failure of the endpoint, no attempt of the policy', async () => {
  const first = await openDestination(product, { answers: ['hang'], policy: ONE_ATTEMPT });
  const { receiver, secret } = first;
  // Three endpoints at one host and port may want more connections than there are.
  const others = await Promise.all(
    ['second', 'third'].map((name) =>
      product.endpoints.create({ name, url: receiver.url, policy: ONE_ATTEMPT, secret }, { actor: 'test' }),
    ),
  );
  const names = [first.name, ...others.map(({ endpoint }) => endpoint.name)];
  const events = await Promise.all(
    names.flatMap((name) => Array.from({ length: PER_ENDPOINT }, () => publishTo(product, { name }))),
  );
  const stop = await product.start(['worker']);
  const { rows } = await until('every first attempt to end', async () => {
    const result = await product.parts.pool.query<{
      delivery_id: string;
      state: string;
      outcome: string;
      error: string;
      rests: boolean;
    }>(
      `select d.delivery_id, d.state, a.outcome, a.error, a.next_due_at > a.finished_at + interval '4 seconds' as rests
         from delivery d join attempt a on a.delivery_id = d.delivery_id and a.attempt = 1
        where a.outcome is not null`,
    );
    return result.rows.length === events.length && result;
  });
  await stop();
  const unsent = rows.filter((row) => row.error === 'not_sent');
  expect(unsent.length).toBeGreaterThan(0);
  expect(unsent.length).toBeLessThanOrEqual(names.length * PER_ENDPOINT - MOST_SOCKETS);
  expect(unsent.filter((row) => row.state !== 'due' || row.outcome !== 'unknown' || !row.rests)).toEqual([]);
  const called = new Set(receiver.calls().map((call) => call.deliveryId));
  expect(unsent.filter((row) => called.has(row.delivery_id))).toEqual([]);
  const endpoints = await Promise.all(names.map((name) => findEndpoint(product.parts.pool, name)));
  const failures = endpoints.reduce((sum, endpoint) => sum + (endpoint?.consecutiveFailures ?? 0), 0);
  expect(failures).toBe(rows.length - unsent.length);
  await receiver.close();
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
