import { afterAll, beforeAll, expect, test } from 'vitest';
import { settleAttempts } from '../../src/store/settle.ts';
import {
  type Destination,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  reaches,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

/** Lets a worker take a delivery and kills it while the receiver has the call. */
async function killDuringCall(policy?: object): Promise<string> {
  destination = await openDestination(product, { answers: ['hang', 200], policy });
  const worker = await startProcess(product, 'worker', {
    DUEPOST_EGRESS_TIMEOUT_MS: '20000',
    DUEPOST_CLAIM_LEASE_MS: '22000',
  });
  const { deliveryId } = await publishTo(product, destination);
  await until('the call', () => destination.receiver.calls().length > 0);
  process.kill(worker.pid, 'SIGKILL');
  await worker.ended;
  // Nobody waits for 22 s here: the lease is over.
  await product.parts.pool.query('update delivery set claim_expires_at = now() where delivery_id = $1', [
    deliveryId,
  ]);
  return deliveryId;
}

test('a worker killed during its call leaves an unknown attempt, and the next one has the same key', async () => {
  const deliveryId = await killDuringCall();
  const stop = await product.start(['worker', 'reconciler']);
  const outcome = await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(outcome.attempts.map((a) => [a.attempt, a.outcome, a.error])).toEqual([
    [1, 'unknown', 'claim_expired'],
    [2, 'delivered', undefined],
  ]);
  expect(new Set(destination.receiver.calls().map((call) => `${call.key} ${call.bodySha256}`)).size).toBe(1);
  expect(destination.receiver.effects()).toHaveLength(1);
  expect(outcome.auditRecords).toHaveLength(1);
});

test('killed at its last attempt, the delivery ends instead of waiting for ever', async () => {
  const deliveryId = await killDuringCall({ kind: 'schedule', retry_schedule: [0], max_attempts: 1 });
  const stop = await product.start(['worker', 'reconciler']);
  const outcome = await reaches(product, deliveryId, 'dead_lettered');
  await stop();
  expect(outcome).toMatchObject({
    deadReason: 'attempts_exhausted',
    attempts: [{ attempt: 1, outcome: 'unknown' }],
    auditRecords: [{ state: 'dead_lettered', attempts: 1 }],
  });
});

test.each([
  ['2xx ends the delivery', 200, 'delivered', ['delivered'], 1],
  ['failure changes nothing but its own attempt', 503, 'due', ['retryable'], 0],
])('a result that comes after its claim lapsed: %s', async (_, status, state, outcomes, records) => {
  const deliveryId = await killDuringCall();
  const claim = { deliveryId, attempt: 1, revision: 1, gone: false, retryAfterClamped: false, trail: '{}' };
  const by = { holder: 'test', timeoutMs: product.config.egress.timeoutMs };
  const lapse = {
    decision: 'lapse',
    outcome: 'unknown',
    endpointFailed: false,
    handedBack: false,
    delayMs: 3_600_000,
  } as const;
  await settleAttempts(product.parts.pool, [{ ...claim, ...lapse }], by);
  const late =
    status === 200
      ? ({ decision: 'deliver', outcome: 'delivered', endpointFailed: false, handedBack: false } as const)
      : ({
          decision: 'retry',
          outcome: 'retryable',
          endpointFailed: true,
          handedBack: false,
          delayMs: 0,
        } as const);
  const [settled] = await settleAttempts(product.parts.pool, [{ ...claim, ...late, status }], by);
  // A result is stored once, however often it is handed in.
  const [again] = await settleAttempts(product.parts.pool, [{ ...claim, ...late, status }], by);
  expect([settled?.effect, again?.effect]).toEqual(['late', 'repeat']);
  const outcome = await outcomeOf(product, deliveryId);
  expect(outcome.state).toBe(state);
  expect(outcome.attempts.map((a) => a.outcome)).toEqual(outcomes);
  expect(outcome.auditRecords).toHaveLength(records);
});
