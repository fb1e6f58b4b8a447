import { kindOf } from '../kind.ts';
import type { Queryable } from '../pool.ts';

/** A reminder or event with its deliveries. */
export interface ErasureTarget {
  readonly sourceId: string;
  readonly deliveryIds: readonly string[];
}

/** The next sources of a contract, or the one that a delivery is of, by id. */
export async function listErasureTargets(
  db: Queryable,
  of: { readonly contractRef: string } | { readonly deliveryId: string },
  page: { readonly after: string; readonly limit: number },
): Promise<ErasureTarget[]> {
  const result = await db.query<{ source_id: string; delivery_ids: string[] }>({
    name: 'list_erasure_targets',
    text: `
      with page as (
        select r.reminder_id as source_id
          from reminder r
         where (r.contract_ref = $1 or r.reminder_id = (select reminder_id from delivery where delivery_id = $2))
           and r.reminder_id > $3
         union all
        select e.event_id
          from event e
         where (e.contract_ref = $1 or e.event_id = (select event_id from delivery where delivery_id = $2))
           and e.event_id > $3
         order by source_id
         limit $4
      )
      select p.source_id,
             array(
               select r.delivery_id
                 from reminder r
                where r.reminder_id = p.source_id
                union all
               select a ->> 'delivery_id'
                 from event e
                cross join jsonb_array_elements(e.answer) as a
                where e.event_id = p.source_id
                  and a ? 'delivery_id') as delivery_ids
        from page p
       order by p.source_id`,
    values: [
      'contractRef' in of ? of.contractRef : null,
      'deliveryId' in of ? of.deliveryId : null,
      page.after,
      page.limit,
    ],
  });
  return result.rows.map((row) => ({ sourceId: row.source_id, deliveryIds: row.delivery_ids }));
}

/** Locks deliveries until the transaction ends, and says which contracts they are of and which have not ended. */
export async function lockForErasure(
  db: Queryable,
  deliveryIds: readonly string[],
): Promise<{ deliveryId: string; contractRef: string | undefined; state: string; hasEnded: boolean }[]> {
  const result = await db.query<{
    delivery_id: string;
    contract_ref: string | null;
    state: string;
    has_ended: boolean;
  }>({
    name: 'lock_for_erasure',
    text: `
      select delivery_id, contract_ref, state, ended_at is not null as has_ended
        from delivery
       where delivery_id = any($1)
       order by delivery_id
         for no key update`,
    values: [deliveryIds],
  });
  return result.rows.map((row) => ({
    deliveryId: row.delivery_id,
    contractRef: row.contract_ref ?? undefined,
    state: row.state,
    hasEnded: row.has_ended,
  }));
}

/**
 * Erases the bytes of a body, with a trail entry in each of its deliveries, whose locks the caller holds; the hash stays.
 *
 * @param trail  the entries' detail: JSON text, kept to the letter
 * @returns false: it was erased before
 */
export async function eraseBody(
  db: Queryable,
  erasure: ErasureTarget & { readonly actor: string; readonly trail: string },
): Promise<boolean> {
  const result = await db.query<{ erased: boolean }>({
    name: 'erase_body',
    text: `
      with clock as materialized (
        select clock_timestamp() as at
      ), erased as (
        update body
           set bytes = null,
               erased_at = c.at
          from clock c
         where source_id = $1
           and bytes is not null
        returning source_id, c.at
      ), moved as (
        update delivery d
           set trail_length = d.trail_length + 1,
               trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, erased.at, 'erase', $3, $4)
          from erased
         where d.delivery_id = any($2)
        returning d.delivery_id, ${kindOf('d')} as kind,
                  d.trail_length, d.trail_sha256, erased.at
      ), told as (
        insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
        select kind, delivery_id, trail_length, at, 'erase', $3, $4, trail_sha256
          from moved
      )
      select exists (select from erased) as erased`,
    values: [erasure.sourceId, erasure.deliveryIds, erasure.actor, erasure.trail],
  });
  return result.rows[0]?.erased === true;
}

/** Whether the payload of a delivery was erased. */
export async function isErased(db: Queryable, deliveryId: string): Promise<boolean> {
  const result = await db.query<{ erased: boolean }>({
    name: 'is_erased',
    text: `
      select exists (
               select
                 from delivery d
                 join body b on b.source_id = coalesce(d.reminder_id, d.event_id)
                where d.delivery_id = $1
                  and b.bytes is null) as erased`,
    values: [deliveryId],
  });
  return result.rows[0]?.erased === true;
}
