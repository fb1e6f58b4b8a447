import type { BundledSeal } from '../../domain/audit/bundle.ts';
import {
  type Completed,
  consistencySpans,
  growTree,
  inclusionSpans,
  leavesFor,
  pathOf,
  type Span,
} from '../../domain/audit/merkle-paths.ts';
import type { StoredLeaf } from '../../store/evidence/seal-leaves.ts';
import {
  findCompletedSubtrees,
  findSeals,
  type StoredSeal,
  splitHashes,
  statementOf,
} from '../../store/evidence/seals.ts';
import type { Queryable } from '../../store/pool.ts';

export interface Proofs {
  /** Oldest first, the last of all included. */
  readonly seals: BundledSeal[];
  /** Where a leaf stands in its seal; the leaf is one of those that were to be proven. */
  placeOf(leaf: StoredLeaf): { seal: number; index: number; path: string[] };
}

/** Seals at a time: their trees, of up to a thousand leaves each, are hashed between two statements. */
const PAGE = 10;

/**
 * The seals that the leaves stand in and the last of all, each with the proof that it belongs to that one's history.
 *
 * What is read and hashed for a seal grows with its own leaves and with the logarithm of the number of seals. Seals never
 * change, so that no transaction is needed.
 *
 * @param of.last  the last seal when the leaves were read; undefined: there is none, and so no leaf
 * @throws Error when a seal is missing that a proof needs
 */
export async function openProofs(
  db: Queryable,
  of: { readonly leaves: readonly StoredLeaf[]; readonly last: StoredSeal | undefined },
): Promise<Proofs> {
  const { leaves, last } = of;
  const numbers = [...new Set(leaves.map((l) => l.sealNumber))].sort((a, b) => a - b);
  const seals: BundledSeal[] = [];
  const paths = new Map<StoredLeaf, string[]>();
  for (let from = 0; from < numbers.length; from += PAGE) {
    const page = await readSeals(db, numbers.slice(from, from + PAGE));
    for (const seal of page) {
      const hashes = splitHashes(seal.leaves);
      const tree = growTree(hashes);
      for (const leaf of leaves.filter((l) => l.sealNumber === seal.number)) {
        paths.set(leaf, hexPath(tree, inclusionSpans({ index: leaf.index, size: hashes.length })));
      }
    }
    if (last !== undefined) seals.push(...(await placeInHistory(db, page, last)));
  }
  if (last !== undefined) seals.push({ ...bundleSeal(last), history: null });
  return {
    seals,
    placeOf: (leaf) => ({ seal: leaf.sealNumber, index: leaf.index, path: paths.get(leaf) ?? [] }),
  };
}

async function readSeals(db: Queryable, numbers: readonly number[]): Promise<StoredSeal[]> {
  const found = await findSeals(db, numbers);
  return numbers.map((number) => {
    const seal = found.get(number);
    if (seal === undefined) throw new Error(`seal ${number} is missing: run duepost audit verify`);
    return seal;
  });
}

/** Those of the seals that are older than the last, each with its place in the history of that one. */
async function placeInHistory(
  db: Queryable,
  seals: readonly StoredSeal[],
  last: StoredSeal,
): Promise<BundledSeal[]> {
  const size = last.number - 1;
  const placed = seals
    .filter((seal) => seal.number < last.number)
    .map((seal) => ({
      seal,
      inclusion: inclusionSpans({ index: seal.number - 1, size }),
      consistency: consistencySpans({ earlier: seal.number - 1, later: size }),
    }));
  const history = await findCompletedSubtrees(
    db,
    leavesFor(placed.flatMap(({ inclusion, consistency }) => [...inclusion, ...consistency])),
  );
  return placed.map(({ seal, inclusion, consistency }) => ({
    ...bundleSeal(seal),
    history: { inclusion: hexPath(history, inclusion), consistency: hexPath(history, consistency) },
  }));
}

function bundleSeal(seal: StoredSeal): Omit<BundledSeal, 'history'> {
  const statement = statementOf(seal);
  return {
    statement: { ...statement, parts: [...statement.parts] },
    signature: seal.signature.toString('hex'),
  };
}

function hexPath(completed: Completed, spans: readonly Span[]): string[] {
  return pathOf(completed, spans).map((hash) => hash.toString('hex'));
}
