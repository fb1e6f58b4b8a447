import { deliveryLeafText, hashContent, operationLeafText } from '../../domain/audit/facts.ts';
import { growPeaks, hashLeaf, rootOf, rootOfPeaks } from '../../domain/audit/merkle.ts';
import {
  hashSeal,
  monthOfId,
  type SealPart,
  type SealStatement,
  type Signer,
  sealText,
} from '../../domain/audit/seal.ts';
import { MAX_LEAVES } from '../../domain/audit/sealing-time.ts';
import type { Log } from '../../runtime/log.ts';
import { findOperations } from '../../store/evidence/operations.ts';
import { type StoredLeaf } from '../../store/evidence/seal-leaves.ts';
import {
  findLastSeal,
  findSeals,
  insertSeal,
  type StoredSeal,
  splitHashes,
  statementOf,
} from '../../store/evidence/seals.ts';
import { findFacts, findInstant } from '../../store/evidence/trail.ts';
import { takeUnsealed, type Unsealed } from '../../store/evidence/unsealed.ts';
import { withLock } from '../../store/lock.ts';
import { insertNotice } from '../../store/notices.ts';
import { inTransaction, type Pool, type Queryable } from '../../store/pool.ts';
import { type Dropped, readDropped } from './dropped.ts';

export interface SealingOptions {
  readonly pool: Pool;
  readonly signer: Signer;
  readonly log: Log;
  /** What this process has seen of seals before; undefined: nothing to compare with. */
  readonly memory?: SealMemory;
  /** Ends the sealing after the seal in hand. */
  readonly signal?: AbortSignal;
}

/** The last seal that a process has made or seen: a store that has lost it is not sealed on. */
export interface SealMemory {
  last?: Pick<StoredSeal, 'number' | 'sha256'> | undefined;
}

/** A leaf to be: whose it is, under which month it stands, and the text that is hashed. */
interface NewLeaf {
  readonly waiting: Unsealed;
  readonly month: string;
  readonly text: string;
  readonly contentSha256: string | undefined;
}

/**
 * Seals what waits, in seals of at most a thousand leaves; one process at a time.
 *
 * @returns the seals that were made, oldest first; undefined: another process is at it
 * @throws Error when a seal that this process has seen is gone or another; nothing is sealed then
 */
export function sealWaiting(options: SealingOptions): Promise<StoredSeal[] | undefined> {
  const { pool, memory = {}, signal } = options;
  return withLock(pool, 'duepost.sealing', async () => {
    const seals: StoredSeal[] = [];
    let dropped: Promise<Dropped> | undefined;
    const readDroppedOnce = (db: Queryable): Promise<Dropped> => (dropped ??= readDropped(db));
    while (signal?.aborted !== true) {
      memory.last = await requireContinued(pool, memory);
      const made = await inTransaction(pool, (db) => sealOnce(db, options, readDroppedOnce));
      if (made === undefined) break;
      // Of what it took there may be nothing left to seal; what comes after it waits all the same.
      if (made.seal === undefined) continue;
      memory.last = made.seal;
      seals.push(made.seal);
    }
    return seals;
  });
}

/** The last seal of the store, which goes on from the one that this process has seen. */
async function requireContinued(db: Queryable, { last: seen }: SealMemory): Promise<StoredSeal | undefined> {
  const last = await findLastSeal(db);
  if (seen === undefined) return last;
  const now = last?.number === seen.number ? last : (await findSeals(db, [seen.number])).get(seen.number);
  if (now?.sha256.equals(seen.sha256) === true) return last;
  throw new Error(
    `seal ${seen.number}, which this process has seen, is ${now === undefined ? 'gone' : 'another one now'} (the last is ${last?.number ?? 'none'}): the history was cut or replaced, or an older state of the database restored. Nothing is sealed: see duepost audit verify --published, and start this process again when that is explained`,
  );
}

/** @returns undefined: nothing waits; without a seal: nothing is left of what waited longest */
async function sealOnce(
  db: Queryable,
  { signer, log }: SealingOptions,
  readDroppedOnce: (db: Queryable) => Promise<Dropped>,
): Promise<{ readonly seal: StoredSeal | undefined } | undefined> {
  const waiting = await takeUnsealed(db, MAX_LEAVES);
  if (waiting.length === 0) return undefined;
  const leaves = await readLeaves(db, waiting);
  const there = new Set(leaves.map((l) => l.waiting));
  for (const lost of waiting.filter((w) => !there.has(w))) {
    // What retention drops leaves the queue with it; it did not always.
    if (lost.kind !== 'operation' && (await readDroppedOnce(db)).covers(lost.kind, lost.subjectId)) continue;
    // Sealing goes on; the check of the store names it, too.
    log.error('unsealed_evidence_is_missing', {
      kind: lost.kind,
      subject_id: lost.subjectId,
      cycle: lost.cycle,
      entry: lost.entry,
    });
  }
  if (leaves.length === 0) return { seal: undefined };
  const { seal, stored } = await compose(db, leaves, signer);
  await insertSeal(db, seal, stored);
  await insertNotice(db, {
    name: 'audit.sealed',
    body: {
      seal: statementOf(seal),
      sha256: seal.sha256.toString('hex'),
      signature: seal.signature.toString('hex'),
    },
  });
  log.info('sealed', { seal: seal.number, leaves: leaves.length, sha256: seal.sha256.toString('hex') });
  return { seal };
}

async function readLeaves(db: Queryable, waiting: readonly Unsealed[]): Promise<NewLeaf[]> {
  const idsOf = (isOperation: boolean): string[] => [
    ...new Set(waiting.filter((w) => (w.kind === 'operation') === isOperation).map((w) => w.subjectId)),
  ];
  const operations = await findOperations(db, idsOf(true));
  const facts = await findFacts(db, idsOf(false));
  const leaves: NewLeaf[] = [];
  for (const item of waiting) {
    if (item.kind === 'operation') {
      const operation = operations.get(item.subjectId);
      if (operation === undefined) continue;
      const text = operationLeafText(operation);
      leaves.push({ waiting: item, month: operation.at.slice(0, 7), text, contentSha256: undefined });
      continue;
    }
    const known = facts.get(item.subjectId);
    const entry = known?.trail.find((e) => e.entry === item.entry);
    const record = known?.records.find((r) => r.cycle === item.cycle) ?? null;
    if (known === undefined || entry === undefined || (item.cycle !== undefined && record === null)) continue;
    const contentSha256 = hashContent(known);
    const text = deliveryLeafText({
      kind: item.kind,
      delivery_id: item.subjectId,
      trail_length: entry.entry,
      trail_sha256: entry.sha256,
      content_sha256: contentSha256,
      record,
    });
    leaves.push({ waiting: item, month: monthOfId(item.subjectId), text, contentSha256 });
  }
  return leaves.sort(byPlace);
}

/** Months stand together, so that a seal can say how many of its leaves a month has. */
function byPlace(a: NewLeaf, b: NewLeaf): number {
  return (
    compare(a.waiting.kind, b.waiting.kind) ||
    compare(a.month, b.month) ||
    compare(a.waiting.subjectId, b.waiting.subjectId) ||
    (a.waiting.entry ?? 0) - (b.waiting.entry ?? 0)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

async function compose(
  db: Queryable,
  leaves: readonly NewLeaf[],
  signer: Signer,
): Promise<{ seal: StoredSeal; stored: StoredLeaf[] }> {
  const last = await findLastSeal(db);
  const hashes = leaves.map((l) => hashLeaf(l.text));
  const seal = createSeal(last, { sealedAt: await findInstant(db), hashes, parts: partsOf(leaves) }, signer);
  return {
    seal,
    stored: leaves.map(({ waiting, contentSha256 }, index) => ({
      ...waiting,
      sealNumber: seal.number,
      index,
      contentSha256,
    })),
  };
}

/**
 * The seal of these leaves that comes after another.
 *
 * @param last  the one before; undefined: it is the first
 */
export function createSeal(
  last: StoredSeal | undefined,
  of: { readonly sealedAt: string; readonly hashes: readonly Buffer[]; readonly parts: readonly SealPart[] },
  signer: Signer,
): StoredSeal {
  const { sealedAt, hashes, parts } = of;
  const number = (last?.number ?? 0) + 1;
  const peaksBefore = last === undefined ? [] : splitHashes(last.peaks);
  const statement: SealStatement = {
    type: 'duepost.seal',
    v: 1,
    number,
    sealed_at: sealedAt,
    key_id: signer.keyId,
    previous_sha256: last?.sha256.toString('hex') ?? null,
    history_root_sha256: rootOfPeaks(peaksBefore).toString('hex'),
    leaves: hashes.length,
    root_sha256: rootOf(hashes).toString('hex'),
    parts,
  };
  const text = sealText(statement);
  const sha256 = hashSeal(text);
  return {
    number,
    text,
    signature: signer.sign(text),
    sha256,
    leaves: Buffer.concat(hashes),
    peaks: Buffer.concat(growPeaks(peaksBefore, number - 1, sha256)),
  };
}

function partsOf(leaves: readonly NewLeaf[]): SealPart[] {
  const parts: { kind: SealPart['kind']; month: string; leaves: number }[] = [];
  for (const { waiting, month } of leaves) {
    const part = parts.at(-1);
    if (part?.kind === waiting.kind && part.month === month) part.leaves += 1;
    else parts.push({ kind: waiting.kind, month, leaves: 1 });
  }
  return parts;
}
