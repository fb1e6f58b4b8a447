import { completeSubtrees } from '../../domain/audit/merkle.ts';
import type { SealStatement } from '../../domain/audit/seal.ts';
import type { MadeSeal } from '../../domain/audit/sealing-time.ts';
import type { Queryable } from '../pool.ts';
import type { StoredLeaf } from './seal-leaves.ts';

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

/** When a seal was made; and the one before it, where that is there. */
export interface SealTime {
  readonly seal: MadeSeal;
  readonly before: MadeSeal | undefined;
}

/** When seals were made, by number; those whose statement cannot be read are left out. */
export async function findSealTimes(
  db: Queryable,
  numbers: readonly number[],
): Promise<Map<number, SealTime>> {
  const result = await db.query<{ seal_number: number; statement: string; before: string | null }>({
    name: 'find_seal_times',
    text: `
      select s.seal_number, s.statement,
             (select b.statement from seal b where b.seal_number = s.seal_number - 1) as before
        from seal s
       where s.seal_number = any($1)`,
    values: [numbers],
  });
  return new Map(
    result.rows.flatMap((row) => {
      const seal = readMade(row.statement);
      return seal === undefined ? [] : [[row.seal_number, { seal, before: readMade(row.before) }] as const];
    }),
  );
}

function readMade(text: string | null): MadeSeal | undefined {
  try {
    return text === null ? undefined : statementOf({ text });
  } catch {
    return undefined;
  }
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

/**
 * By seal number: the subtrees of the history that the seal completed, smallest first.
 *
 * They are made of its hash and of the peaks that the seal before it left, so that no other seal is read.
 *
 * @throws RangeError when the seal before it is missing, or its peaks are
 */
export async function findCompletedSubtrees(
  db: Queryable,
  numbers: readonly number[],
): Promise<Map<number, Buffer[]>> {
  const result = await db.query<{ seal_number: number; sha256: Buffer; peaks_before: Buffer | null }>({
    name: 'find_completed_subtrees',
    text: `
      select s.seal_number, s.sha256,
             (select b.peaks from seal b where b.seal_number = s.seal_number - 1) as peaks_before
        from seal s
       where s.seal_number = any($1)`,
    values: [numbers],
  });
  return new Map(
    result.rows.map(({ seal_number, sha256, peaks_before }) => [
      seal_number,
      completeSubtrees(splitHashes(peaks_before ?? Buffer.alloc(0)), seal_number - 1, sha256),
    ]),
  );
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
