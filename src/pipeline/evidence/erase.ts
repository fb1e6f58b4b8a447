import { Refusal } from '../../domain/refusal.ts';
import {
  type ErasureTarget,
  eraseBody,
  listErasureTargets,
  lockForErasure,
} from '../../store/evidence/erasures.ts';
import { listHolds } from '../../store/evidence/holds.ts';
import { inTransaction, type Pool, type Queryable } from '../../store/pool.ts';

export type ErasureReference = { readonly contractRef: string } | { readonly deliveryId: string };

/**
 * Erases the payloads of a contract, or the one of a delivery: the bytes go, their hash stays, and the trail of each
 * delivery says who did it and why.
 *
 * @returns how many payloads were erased now
 * @throws Refusal when there is nothing, a delivery has not ended, or the contract is on hold; nothing is erased then
 */
export async function erasePayloads(
  pool: Pool,
  reference: ErasureReference,
  by: { readonly actor: string; readonly reason: string },
): Promise<number> {
  const targets = await listErasureTargets(pool, reference);
  if (targets.length === 0) {
    const what =
      'contractRef' in reference
        ? `nothing of contract ${reference.contractRef}`
        : `no delivery ${reference.deliveryId}`;
    throw new Refusal('not_found', `there is ${what}`);
  }
  const trail = JSON.stringify({ reason: by.reason });
  return inTransaction(pool, async (db) => {
    await requireErasable(db, targets);
    let erased = 0;
    for (const target of targets) {
      if (await eraseBody(db, { ...target, actor: by.actor, trail })) erased += 1;
    }
    return erased;
  });
}

async function requireErasable(db: Queryable, targets: readonly ErasureTarget[]): Promise<void> {
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
  const [hold] = await listHolds(
    db,
    deliveries.flatMap((d) => d.contractRef ?? []),
  );
  if (hold !== undefined) {
    throw new Refusal('transition_not_allowed', `contract ${hold.contractRef} is on hold: ${hold.reason}`);
  }
}
