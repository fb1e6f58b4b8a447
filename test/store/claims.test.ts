import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ClaimRequest } from '../../src/store/claims.ts';
import type { Verdict } from '../../src/store/verdict.ts';
import { claimSome } from '../support/attempts.ts';
import { type Destination, inMs, openDestination, outcomeOf, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

const TIMEOUT_MS = 2_000;
let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

async function withDestination<T>(work: (destination: Destination) => Promise<T>): Promise<T> {
  const destination = await openDestination(product);
  try {
    return await work(destination);
  } finally {
    await destination.receiver.close();
  }
}

async function claim(
  deliveryIds: readonly string[],
  request: Partial<ClaimRequest> = {},
): Promise<(Verdict | undefined)[]> {
  const verdicts = await claimSome(
    product.parts.pool,
    deliveryIds.map((deliveryId) => ({ deliveryId, attempt: 1 })),
    { timeoutMs: TIMEOUT_MS, ...request },
  );
  return deliveryIds.map((id) => verdicts.get(id));
}

/** Publishes one, changes its row or its endpoint's, and asks for a claim. */
function claimAfter(sql: string, changes: Parameters<typeof publishTo>[2] = {}): Promise<unknown> {
  return withDestination(async (destination) => {
    const { deliveryId } = await publishTo(product, destination, changes);
    if (sql !== '')
      await product.parts.pool.query(sql, [sql.includes('endpoint ') ? destination.endpointId : deliveryId]);
    const [verdict] = await claim([deliveryId]);
    const { attempts } = await outcomeOf(product, deliveryId);
    return { verdict: verdict?.verdict, attempts: attempts.length };
  });
}

const NOT_CLAIMED = { attempts: 0 };

test('what is due is claimed, with an attempt that commits with it', async () => {
  expect(await claimAfter('')).toEqual({ verdict: 'claimed', attempts: 1 });
});

test('what is due later waits as long as is left', () =>
  withDestination(async (destination) => {
    const { deliveryId } = await publishTo(product, destination, { deliverAt: inMs(600_000) });
    const [verdict] = await claim([deliveryId]);
    expect(verdict).toMatchObject({ verdict: 'wait', attempt: 1 });
    const { remainingMs } = verdict as Extract<Verdict, { verdict: 'wait' }>;
    expect(remainingMs).toBeGreaterThan(500_000);
    expect(remainingMs).toBeLessThanOrEqual(600_000);
  }));

test('what could not end before its deadline is missed, and what is just in time is claimed', async () => {
  const deadlineIn = (ms: number): string =>
    `update delivery set deadline_at = now() + interval '${ms} ms' where delivery_id = $1`;
  expect(await claimAfter(deadlineIn(TIMEOUT_MS - 500))).toEqual({ verdict: 'missed', ...NOT_CLAIMED });
  expect(await claimAfter(deadlineIn(TIMEOUT_MS + 60_000))).toEqual({ verdict: 'claimed', attempts: 1 });
});

test('nothing is claimed of an endpoint that was paused meanwhile', async () => {
  expect(await claimAfter("update endpoint set status = 'paused' where endpoint_id = $1")).toEqual({
    verdict: 'unreachable',
    ...NOT_CLAIMED,
  });
});

test('no more is claimed of an endpoint than it takes, less what is taken, and an eighth is kept for what is near its deadline', () =>
  withDestination(async (destination) => {
    const bulk = await Promise.all(Array.from({ length: 20 }, () => publishTo(product, destination)));
    const urgent = await publishTo(product, destination, { deadlineAt: inMs(1_800_000) });
    const ids = [...bulk, urgent].map((d) => d.deliveryId);
    const verdicts = await claim(ids, {
      maxPerEndpoint: 16,
      taken: new Map([[destination.endpointId, 4]]),
    });
    expect(verdicts.filter((v) => v?.verdict === 'claimed')).toHaveLength(10);
    expect(verdicts.at(-1)?.verdict).toBe('claimed');
    expect(verdicts.filter((v) => v?.verdict === 'crowded')).toHaveLength(11);
  }));

test('a claim that ran out is told to whoever asks, and one that holds is waited for', () =>
  withDestination(async (destination) => {
    const { deliveryId } = await publishTo(product, destination);
    await claim([deliveryId], { holder: 'somebody' });
    expect((await claim([deliveryId]))[0]).toMatchObject({ verdict: 'wait', attempt: 2 });
    await product.parts.pool.query('update delivery set claim_expires_at = now() where delivery_id = $1', [
      deliveryId,
    ]);
    expect((await claim([deliveryId]))[0]).toMatchObject({ verdict: 'lapsed', attempt: 1, ours: false });
  }));
