import { Refusal } from '../../domain/refusal.ts';
import { insertHold, lockHolds, releaseHold } from '../../store/evidence/holds.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool, type Queryable } from '../../store/pool.ts';

interface HoldRequest {
  readonly contractRef: string;
  readonly actor: string;
  readonly reason: string;
}

/** From now on nothing of the contract is dropped or erased. Throws a Refusal when that is so already. */
export async function placeHold(pool: Pool, request: HoldRequest): Promise<void> {
  await inTransaction(pool, async (db) => {
    if (!(await insertHold(db, request))) {
      throw new Refusal('transition_not_allowed', `contract ${request.contractRef} is on hold already`);
    }
    await insertOperation(db, toOperation('hold.placed', request));
  });
}

/** Ends a hold. Throws a Refusal when there is none. */
export async function endHold(pool: Pool, request: HoldRequest): Promise<void> {
  await inTransaction(pool, async (db) => {
    if (!(await releaseHold(db, request))) {
      throw new Refusal('not_found', `contract ${request.contractRef} is not on hold`);
    }
    await insertOperation(db, toOperation('hold.released', request));
  });
}

/**
 * Runs `work`, which removes what no hold keeps, in a transaction in which no hold is placed: one that is asked for
 * meanwhile is answered when it is through, and what is there then stays.
 */
export function whileHoldsStand<T>(pool: Pool, work: (db: Queryable) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (db) => {
    await lockHolds(db);
    return work(db);
  });
}

function toOperation(event: string, { contractRef, actor, reason }: HoldRequest) {
  return { subjectId: contractRef, event, actor, detail: { reason } };
}
