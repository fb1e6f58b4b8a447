import type { SealStatement } from '../domain/audit/seal.ts';
import type { Queryable } from './pool.ts';

export interface StoredSeal {
  readonly number: number;
  /** What is signed, to the letter. */
  readonly text: string;
  readonly signature: Buffer;
  readonly sha256: Buffer;
  /** The hashes of its leaves, 32 bytes each. */
  readonly leaves: Buffer;
  readonly peaks: Buffer;
}

/** The statement within a seal's text. */
export function statementOf(seal: Pick<StoredSeal, 'text'>): SealStatement {
  return JSON.parse(seal.text) as SealStatement;
}

/** Splits hashes that are stored as one. */
export function splitHashes(joined: Buffer): Buffer[] {
  return Array.from({ length: joined.length / 32 }, (_, i) => joined.subarray(32 * i, 32 * i + 32));
}

interface SealRow {
  readonly seal_number: number;
  readonly statement: string;
  readonly signature: Buffer;
  readonly sha256: Buffer;
  readonly leaves: Buffer;
  readonly peaks: Buffer;
}

function toSeal(row: SealRow): StoredSeal {
  return {
    number: row.seal_number,
    text: row.statement,
    signature: row.signature,
    sha256: row.sha256,
    leaves: row.leaves,
    peaks: row.peaks,
  };
}

/** The newest seal. */
export async function findLastSeal(db: Queryable): Promise<StoredSeal | undefined> {
  const result = await db.query<SealRow>({
    name: 'find_last_seal',
    text: `
      select seal_number, statement, signature, sha256, leaves, peaks
        from seal
       order by seal_number desc
       limit 1`,
    values: [],
  });
  return result.rows[0] && toSeal(result.rows[0]);
}

/** Seals by number. */
export async function findSeals(db: Queryable, numbers: readonly number[]): Promise<Map<number, StoredSeal>> {
  const result = await db.query<SealRow>({
    name: 'find_seals',
    text: `
      select seal_number, statement, signature, sha256, leaves, peaks
        from seal
       where seal_number = any($1)`,
    values: [numbers],
  });
  return new Map(result.rows.map((row) => [row.seal_number, toSeal(row)]));
}

/** The next seals by number. */
export async function listSealsAfter(
  db: Queryable,
  page: { readonly after: number; readonly limit: number },
): Promise<StoredSeal[]> {
  const result = await db.query<SealRow>({
    name: 'list_seals_after',
    text: `
      select seal_number, statement, signature, sha256, leaves, peaks
        from seal
       where seal_number > $1
       order by seal_number
       limit $2`,
    values: [page.after, page.limit],
  });
  return result.rows.map(toSeal);
}

/** The hashes of all seals up to a number, in order: the leaves of the history. */
export async function listSealHashes(db: Queryable, upTo: number): Promise<Buffer[]> {
  const result = await db.query<{ sha256: Buffer }>({
    name: 'list_seal_hashes',
    text: `
      select sha256
        from seal
       where seal_number <= $1
       order by seal_number`,
    values: [upTo],
  });
  return result.rows.map((row) => row.sha256);
}

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

/** Inserts a seal with its leaves. */
export async function insertSeal(
  db: Queryable,
  seal: StoredSeal,
  leaves: readonly StoredLeaf[],
): Promise<void> {
  await db.query({
    name: 'insert_seal',
    text: `
      with sealed as (
        insert into seal (seal_number, statement, signature, sha256, leaves, peaks)
        values ($1, $2, $3, $4, $5, $6)
      )
      insert into seal_leaf (kind, subject_id, seal_number, leaf_index, cycle, entry, content_sha256)
      select l.kind, l.subject_id, $1, l.leaf_index, l.cycle, l.entry, decode(l.content_sha256, 'hex')
        from unnest($7::text[], $8::text[], $9::int[], $10::int[], $11::int[], $12::text[])
             as l (kind, subject_id, leaf_index, cycle, entry, content_sha256)`,
    values: [
      seal.number,
      seal.text,
      seal.signature,
      seal.sha256,
      seal.leaves,
      seal.peaks,
      leaves.map((l) => l.kind),
      leaves.map((l) => l.subjectId),
      leaves.map((l) => l.index),
      leaves.map((l) => l.cycle ?? null),
      leaves.map((l) => l.entry ?? null),
      leaves.map((l) => l.contentSha256 ?? null),
    ],
  });
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
