import { Refusal } from '../../domain/refusal.ts';
import {
  type ErasureTarget,
  eraseBody,
  listErasureTargets,
  lockForErasure,
} from '../../store/evidence/erasures.ts';
import { listHolds } from '../../store/evidence/holds.ts';
import type { Pool, Queryable } from '../../store/pool.ts';
import { whileHoldsStand } from './hold.ts';

export type ErasureReference = { readonly contractRef: string } | { readonly deliveryId: string };

/** Payloads in one transaction: their trail entries are sealed soon after their instants, and a hold waits for no more. */
const PAGE = 500;

/**
 * Erases the payloads of a contract, or the one of a delivery: the bytes go, their hash stays, and the trail of each
 * delivery says who did it and why.
 *
 * @returns how many payloads were erased now
 * @throws Refusal when there is nothing, a delivery has not ended, or the contract is on hold; nothing is erased then,
 *   unless that came in between: the text says how many were erased before
 */
export async function erasePayloads(
  pool: Pool,
  reference: ErasureReference,
  by: { readonly actor: string; readonly reason: string },
): Promise<number> {
  let known = 0;
  for await (const targets of inPages(pool, reference)) {
    await requireErasable(pool, targets, reference);
    known += targets.length;
  }
  if (known === 0) {
    const what =
      'contractRef' in reference
        ? `nothing of contract ${reference.contractRef}`
        : `no delivery ${reference.deliveryId}`;
    throw new Refusal('not_found', `there is ${what}`);
  }
  const trail = JSON.stringify({ reason: by.reason });
  let erased = 0;
  try {
    for await (const targets of inPages(pool, reference)) {
      erased += await whileHoldsStand(pool, async (db) => {
        await requireErasable(db, targets, reference);
        let count = 0;
        for (const target of targets) {
          if (await eraseBody(db, { ...target, actor: by.actor, trail })) count += 1;
        }
        return count;
      });
    }
  } catch (error) {
    if (!(error instanceof Refusal) || erased === 0) throw error;
    throw new Refusal(error.code, `${error.message}; ${erased} payloads were erased before that`);
  }
  return erased;
}

async function* inPages(db: Queryable, reference: ErasureReference): AsyncGenerator<ErasureTarget[]> {
  for (let after = ''; ; ) {
    const page = await listErasureTargets(db, reference, { after, limit: PAGE });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    after = last.sourceId;
  }
}

async function requireErasable(
  db: Queryable,
  targets: readonly ErasureTarget[],
  reference: ErasureReference,
): Promise<void> {
  const deliveries = await lockForErasure(
    db,
    targets.flatMap((t) => t.deliveryIds),
  );
  const open = deliveries.filter((d) => !d.hasEnded);
  if (open.length > 0) {
    throw new Refusal(
      'transition_not_allowed',
      `what has not ended cannot be erased: ${open
        .slice(0, 10)
        .map((d) => `${d.deliveryId} is ${d.state}`)
        .join(', ')}; cancel it first, or wait`,
    );
  }
  // An event that nobody wanted has a contract and no delivery.
  const asked = 'contractRef' in reference ? [reference.contractRef] : [];
  const [hold] = await listHolds(db, [...asked, ...deliveries.flatMap((d) => d.contractRef ?? [])]);
  if (hold !== undefined) {
    throw new Refusal('transition_not_allowed', `contract ${hold.contractRef} is on hold: ${hold.reason}`);
  }
}
