import { type ClaimRequest, claimDeliveries } from '../../src/store/claims.ts';
import type { Queryable } from '../../src/store/pool.ts';
import type { Settlement } from '../../src/store/settlement.ts';
import type { Verdict } from '../../src/store/verdict.ts';

/** Claims a delivery's attempt, the first one unless said, as a holder would that has nothing in hand. */
export async function claimOne(
  db: Queryable,
  deliveryId: string,
  { attempt = 1, ...changes }: Partial<ClaimRequest> & { readonly attempt?: number } = {},
): Promise<Verdict | undefined> {
  return (await claimSome(db, [{ deliveryId, attempt }], changes)).get(deliveryId);
}

/** The same for several at once; by delivery id. */
export function claimSome(
  db: Queryable,
  wakeUps: ClaimRequest['wakeUps'],
  changes: Partial<ClaimRequest> = {},
): Promise<Map<string, Verdict>> {
  return claimDeliveries(db, {
    wakeUps,
    leaseMs: 15_000,
    timeoutMs: 10_000,
    holder: 'test',
    maxPerEndpoint: 32,
    inHand: new Set(),
    taken: new Map(),
    ...changes,
  });
}

/** What is written of a first attempt that was answered with success, but for the changes. */
export function settlementOf(deliveryId: string, changes: Partial<Settlement> = {}): Settlement {
  return {
    deliveryId,
    attempt: 1,
    revision: 1,
    decision: 'deliver',
    outcome: 'delivered',
    endpointFailed: false,
    gone: false,
    handedBack: false,
    retryAfterClamped: false,
    trail: '{}',
    ...changes,
  };
}
