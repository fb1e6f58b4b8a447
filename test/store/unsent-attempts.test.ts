import { afterAll, beforeAll, expect, test } from 'vitest';
import { handBack } from '../../src/pipeline/deliver/unknown-outcome.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import { claimOne } from '../support/attempts.ts';
import { type Destination, inMs, openDestination, outcomeOf, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

const TIMEOUT_MS = 2_000;
let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct();
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

/** Claims what waits, whenever it is due, and hands it back unsent. */
async function failToSend(deliveryId: string, attempt: number, delayMs = 30_000): Promise<void> {
  const { pool } = product.parts;
  await pool.query('update delivery set due_at = now() where delivery_id = $1', [deliveryId]);
  const verdict = await claimOne(pool, deliveryId, { attempt, timeoutMs: TIMEOUT_MS });
  if (verdict?.verdict !== 'claimed') throw new Error(`${deliveryId}: ${verdict?.verdict}`);
  await settleAttempts(pool, [handBack(verdict.claim, { why: 'a fault', delayMs })], {
    holder: 'test',
    timeoutMs: TIMEOUT_MS,
  });
}

/** Seconds from the end of each attempt until the next. */
async function restsOf(deliveryId: string): Promise<number[]> {
  const { state, attempts } = await outcomeOf(product, deliveryId);
  expect(state).toBe('due');
  return attempts.map((a) => Math.round((Number(a.nextDueAt) - Number(a.finishedAt)) / 1_000));
}

test('a fault of ours that lasts writes fewer and fewer attempts, down to one in 15 minutes', async () => {
  const { deliveryId } = await publishTo(product, destination);
  for (let attempt = 1; attempt <= 7; attempt += 1) await failToSend(deliveryId, attempt);

  expect(await restsOf(deliveryId)).toEqual([30, 60, 120, 240, 480, 900, 900]);
});

test('so does what is handed back at once, again and again', async () => {
  const { deliveryId } = await publishTo(product, destination);
  for (let attempt = 1; attempt <= 5; attempt += 1) await failToSend(deliveryId, attempt, 0);

  expect(await restsOf(deliveryId)).toEqual([0, 2, 4, 8, 16]);
});

test('what could not be sent is tried once more at the last call, however long it has lasted', async () => {
  const deadlineAt = inMs(300_000);
  const { deliveryId } = await publishTo(product, destination, { deadlineAt });
  for (let attempt = 1; attempt <= 5; attempt += 1) await failToSend(deliveryId, attempt);

  const { attempts } = await outcomeOf(product, deliveryId);
  expect(Number(attempts.at(-1)?.nextDueAt)).toBe(deadlineAt.getTime() - TIMEOUT_MS - 5_000);
});
