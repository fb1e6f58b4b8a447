import { Refusal } from '../../domain/refusal.ts';
import { insertHold, releaseHold } from '../../store/evidence/holds.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool } from '../../store/pool.ts';

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

function toOperation(event: string, { contractRef, actor, reason }: HoldRequest) {
  return { subjectId: contractRef, event, actor, detail: { reason } };
}
