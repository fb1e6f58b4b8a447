import type { Queryable } from '../pool.ts';

/** A contract of which nothing may be dropped or erased. */
export interface Hold {
  readonly contractRef: string;
  readonly placedAt: Date;
  readonly placedBy: string;
  readonly reason: string;
}

/** Places a hold; false: one is in force. */
export async function insertHold(
  db: Queryable,
  hold: { readonly contractRef: string; readonly actor: string; readonly reason: string },
): Promise<boolean> {
  const result = await db.query({
    name: 'insert_hold',
    text: `
      insert into legal_hold (contract_ref, placed_by, reason)
      values ($1, $2, $3)
      on conflict (contract_ref) where released_at is null do nothing`,
    values: [hold.contractRef, hold.actor, hold.reason],
  });
  return result.rowCount === 1;
}

/** Lets nobody place or release a hold until the transaction ends; what is read after this sees all that were placed. */
export async function lockHolds(db: Queryable): Promise<void> {
  await db.query({ text: 'lock table legal_hold in share mode', values: [] });
}

/** Releases a hold; false: none is in force. */
export async function releaseHold(
  db: Queryable,
  hold: { readonly contractRef: string; readonly actor: string; readonly reason: string },
): Promise<boolean> {
  const result = await db.query({
    name: 'release_hold',
    text: `
      update legal_hold
         set released_at = now(),
             released_by = $2,
             release_reason = $3
       where contract_ref = $1
         and released_at is null`,
    values: [hold.contractRef, hold.actor, hold.reason],
  });
  return result.rowCount === 1;
}

/** The holds in force, by contract; of the given contracts, or all. */
export async function listHolds(db: Queryable, contractRefs?: readonly string[]): Promise<Hold[]> {
  const result = await db.query<{ contract_ref: string; placed_at: Date; placed_by: string; reason: string }>(
    {
      name: 'list_holds',
      text: `
      select contract_ref, placed_at, placed_by, reason
        from legal_hold
       where released_at is null
         and ($1::text[] is null or contract_ref = any($1))
       order by contract_ref`,
      values: [contractRefs ?? null],
    },
  );
  return result.rows.map((row) => ({
    contractRef: row.contract_ref,
    placedAt: row.placed_at,
    placedBy: row.placed_by,
    reason: row.reason,
  }));
}
