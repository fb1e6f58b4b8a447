import type { Queryable } from '../pool.ts';
import type { Unsealed } from './unsealed.ts';

/** A leaf, and whose it is. */
export interface StoredLeaf {
  readonly kind: Unsealed['kind'];
  readonly subjectId: string;
  readonly sealNumber: number;
  readonly index: number;
  readonly cycle: number | undefined;
  readonly entry: number | undefined;
  /** Hex; undefined for an operation. */
  readonly contentSha256: string | undefined;
}

/** A leaf as it stands in its seal. */
export interface FoundLeaf extends StoredLeaf {
  /** Hex; undefined: there is no such seal, or no such place in it. */
  readonly sha256: string | undefined;
}

interface LeafRow {
  readonly kind: StoredLeaf['kind'];
  readonly subject_id: string;
  readonly seal_number: number;
  readonly leaf_index: number;
  readonly cycle: number | null;
  readonly entry: number | null;
  readonly content_sha256: string | null;
  readonly sha256: string | null;
}

// The hashes are stored uncompressed, so that one of them is read without the others.
const LEAF_COLUMNS = `l.kind, l.subject_id, l.seal_number, l.leaf_index, l.cycle, l.entry,
             encode(l.content_sha256, 'hex') as content_sha256,
             nullif(encode(substring(s.leaves from 32 * l.leaf_index + 1 for 32), 'hex'), '') as sha256`;

function toLeaf(row: LeafRow): FoundLeaf {
  return {
    kind: row.kind,
    subjectId: row.subject_id,
    sealNumber: row.seal_number,
    index: row.leaf_index,
    cycle: row.cycle ?? undefined,
    entry: row.entry ?? undefined,
    contentSha256: row.content_sha256 ?? undefined,
    sha256: row.sha256 ?? undefined,
  };
}

/** The leaves of subjects, in the order in which they were sealed. */
export async function findLeaves(db: Queryable, subjectIds: readonly string[]): Promise<FoundLeaf[]> {
  const result = await db.query<LeafRow>({
    name: 'find_leaves',
    text: `
      select ${LEAF_COLUMNS}
        from seal_leaf l
        left join seal s on s.seal_number = l.seal_number
       where l.subject_id = any($1)
       order by l.seal_number, l.leaf_index`,
    values: [subjectIds],
  });
  return result.rows.map(toLeaf);
}

/** The leaves of a seal, in order; those that retention has dropped are not there. */
export async function listLeavesOfSeal(db: Queryable, sealNumber: number): Promise<FoundLeaf[]> {
  const result = await db.query<LeafRow>({
    name: 'list_leaves_of_seal',
    text: `
      select ${LEAF_COLUMNS}
        from seal_leaf l
        left join seal s on s.seal_number = l.seal_number
       where l.seal_number = $1
       order by l.leaf_index`,
    values: [sealNumber],
  });
  return result.rows.map(toLeaf);
}

/** Numbers of seals beyond the last one that leaves name. */
export async function listLostSeals(db: Queryable, limit: number): Promise<number[]> {
  const result = await db.query<{ seal_number: number }>({
    name: 'list_lost_seals',
    text: `
      select distinct l.seal_number
        from seal_leaf l
       where l.seal_number > (select coalesce(max(s.seal_number), 0) from seal s)
       order by l.seal_number
       limit $1`,
    values: [limit],
  });
  return result.rows.map((row) => row.seal_number);
}

/** The next operations that were sealed, by id as text. */
export async function listSealedOperationsAfter(
  db: Queryable,
  page: { readonly after: string; readonly limit: number },
): Promise<string[]> {
  const result = await db.query<{ subject_id: string }>({
    name: 'list_sealed_operations_after',
    text: `
      select distinct subject_id
        from seal_leaf
       where kind = 'operation'
         and subject_id > $1
       order by subject_id
       limit $2`,
    values: [page.after, page.limit],
  });
  return result.rows.map((row) => row.subject_id);
}
