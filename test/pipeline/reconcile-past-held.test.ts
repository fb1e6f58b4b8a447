import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { createRiskWatch } from '../../src/pipeline/reconcile/at-risk.ts';
import { createReconciler } from '../../src/pipeline/reconcile/reconcile.ts';
import { resetWatermark } from '../../src/store/due.ts';
import { fillDeliveries } from '../support/fill.ts';
import {
  type Destination,
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  purgeEverything,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const TIMEOUT_MS = 2_000;
/** As much as a pass reads. */
const HELD = 20_000;
const HOUR_MS = 3_600_000;

let product: TestProduct;
let destination: Destination;
let heldIds: string[];

beforeAll(async () => {
  product = await openTestProduct();
  const { pool } = product.parts;
  const paused = await openDestination(product);
  destination = await openDestination(product);
  await Promise.all([paused.receiver.close(), destination.receiver.close()]);
  await product.endpoints.pause(paused.name, { actor: 'test' });
  await fillDeliveries(pool, { ...paused, state: 'held', count: HELD, dueAgoMs: 48 * HOUR_MS });
  const { rows } = await pool.query('select delivery_id from delivery order by due_at, delivery_id');
  heldIds = rows.map((row) => row.delivery_id);
});

afterAll(() => product.close());

function common() {
  return {
    ...product.parts,
    log: product.recorded.log,
    deliveriesQueue: namesOf(product.config.broker.prefix).deliveries,
    graceMs: 0,
    timeoutMs: TIMEOUT_MS,
    horizonMs: HOUR_MS,
    signal: new AbortController().signal,
  };
}

async function loseAWakeUp(): Promise<void> {
  await publishTo(product, destination, { deliverAt: inMs(-60_000), idempotencyKey: randomUUID() });
  await product.parts.announcer.drain();
  await purgeEverything(product);
  await resetWatermark(product.parts.pool);
}

async function setDeadline(deliveryId: string, marginMs: number): Promise<void> {
  await product.parts.pool.query(
    `update delivery set deadline_at = now() + $2 * interval '1 millisecond' where delivery_id = $1`,
    [deliveryId, marginMs],
  );
}

test('what is held in front of a lost wake-up delays it by a pass that is not paused for, and the next one by nothing', async () => {
  const reconciler = createReconciler(common());
  await loseAWakeUp();
  expect(await reconciler.reconcile()).toMatchObject({ announced: 0, again: true });
  expect(await reconciler.reconcile()).toMatchObject({ announced: 1, again: false });
  await loseAWakeUp();
  // The first one still waits for a worker.
  expect(await reconciler.reconcile()).toMatchObject({ announced: 2, again: false });
});

test('what is passed over because it is held misses its deadline in time', async () => {
  const reconciler = createReconciler(common());
  const [deliveryId = ''] = heldIds;
  await setDeadline(deliveryId, TIMEOUT_MS + 3_000);
  expect(await reconciler.reconcile()).toMatchObject({ missed: 0, again: true });
  await until('the miss', async () => (await reconciler.reconcile())?.missed === 1);
  expect(await outcomeOf(product, deliveryId)).toMatchObject({
    state: 'dead_lettered',
    deadReason: 'deadline_passed',
  });
});

test('the watch for risks goes on at once as well, and passes over what is held and told', async () => {
  const riskWatch = createRiskWatch(common());
  const [, told = '', behind = ''] = heldIds.toReversed();
  await setDeadline(told, 2 * HOUR_MS);
  // It reads half of it in a pass.
  const passes = [await riskWatch.watch(), await riskWatch.watch(), await riskWatch.watch()];
  expect(passes.reduce((sum, { flagged }) => sum + flagged, 0)).toBe(1);
  expect(passes.map(({ again }) => again)).toEqual([true, true, false]);
  await setDeadline(behind, 2 * HOUR_MS);
  expect(await riskWatch.watch()).toEqual({ flagged: 1, again: false });
});
