import type { Queryable } from '../pool.ts';

/** Something that waits to be sealed. */
export interface Unsealed {
  readonly kind: 'reminder' | 'event' | 'operation';
  readonly subjectId: string;
  /** Of the audit record; undefined: the trail alone. */
  readonly cycle: number | undefined;
  /** The trail entry up to which it is sealed; undefined for an operation. */
  readonly entry: number | undefined;
}

/** Takes what waits longest out of the queue; the caller seals it in the same transaction. */
export async function takeUnsealed(db: Queryable, limit: number): Promise<Unsealed[]> {
  const result = await db.query<{
    kind: Unsealed['kind'];
    subject_id: string;
    cycle: number | null;
    entry: number | null;
  }>({
    name: 'take_unsealed',
    text: `
      delete from unsealed
       where unsealed_id in (
         select unsealed_id
           from unsealed
          order by unsealed_id
          limit $1
            for update skip locked)
      returning kind, subject_id, cycle, entry`,
    values: [limit],
  });
  return result.rows.map((row) => ({
    kind: row.kind,
    subjectId: row.subject_id,
    cycle: row.cycle ?? undefined,
    entry: row.entry ?? undefined,
  }));
}

/** How many subjects wait to be sealed, by kind; counts no further than `limit`. */
export async function countUnsealed(db: Queryable, limit: number): Promise<number> {
  const result = await db.query<{ waiting: string }>({
    name: 'count_unsealed',
    text: 'select count(*) as waiting from (select from unsealed limit $1) as page',
    values: [limit],
  });
  return Number(result.rows[0]?.waiting ?? 0);
}

/** What of the given subjects waits to be sealed. */
export async function findUnsealed(db: Queryable, subjectIds: readonly string[]): Promise<Unsealed[]> {
  const result = await db.query<{
    kind: Unsealed['kind'];
    subject_id: string;
    cycle: number | null;
    entry: number | null;
  }>({
    name: 'find_unsealed',
    text: `
      select kind, subject_id, cycle, entry
        from unsealed
       where subject_id = any($1)`,
    values: [subjectIds],
  });
  return result.rows.map((row) => ({
    kind: row.kind,
    subjectId: row.subject_id,
    cycle: row.cycle ?? undefined,
    entry: row.entry ?? undefined,
  }));
}
