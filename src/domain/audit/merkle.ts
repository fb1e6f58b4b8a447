import { createHash } from 'node:crypto';

// Merkle trees as in RFC 9162, section 2.1: leaves and inner nodes are hashed with different prefixes, so that neither can
// pass for the other.

const LEAF = Buffer.from([0x00]);
const NODE = Buffer.from([0x01]);

export function hashLeaf(content: string | Uint8Array): Buffer {
  return createHash('sha256').update(LEAF).update(content).digest();
}

function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update(NODE).update(left).update(right).digest();
}

/** The root of the tree without leaves. */
export function emptyRoot(): Buffer {
  return createHash('sha256').digest();
}

/** The root over leaf hashes. */
export function rootOf(leaves: readonly Buffer[]): Buffer {
  return leaves.length === 0 ? emptyRoot() : rootBetween(leaves, 0, leaves.length);
}

function rootBetween(leaves: readonly Buffer[], from: number, to: number): Buffer {
  if (to - from === 1) return leaves[from] as Buffer;
  const middle = from + splitOf(to - from);
  return hashNode(rootBetween(leaves, from, middle), rootBetween(leaves, middle, to));
}

/** The largest power of two below `size`. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** What must be hashed together with a leaf, from the bottom up, to arrive at the root. */
export function inclusionPath(leaves: readonly Buffer[], index: number): Buffer[] {
  const path: Buffer[] = [];
  let from = 0;
  let to = leaves.length;
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      path.unshift(rootBetween(leaves, middle, to));
      to = middle;
    } else {
      path.unshift(rootBetween(leaves, from, middle));
      from = middle;
    }
  }
  return path;
}

/** The root that a leaf and its path lead to (RFC 9162, 2.1.3.2); undefined: the path does not fit the tree. */
export function rootOfInclusion(
  leaf: Buffer,
  at: { readonly index: number; readonly size: number },
  path: readonly Buffer[],
): Buffer | undefined {
  if (at.index < 0 || at.index >= at.size) return undefined;
  let index = at.index;
  let last = at.size - 1;
  let hash = leaf;
  for (const sibling of path) {
    if (last === 0) return undefined;
    if (index % 2 === 1 || index === last) {
      hash = hashNode(sibling, hash);
      while (index % 2 === 0 && index !== 0) {
        index = Math.floor(index / 2);
        last = Math.floor(last / 2);
      }
    } else {
      hash = hashNode(hash, sibling);
    }
    index = Math.floor(index / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 ? hash : undefined;
}

/** Shows that the tree over the first `size` leaves is a beginning of the tree over all of them (RFC 9162, 2.1.4.1). */
export function consistencyPath(leaves: readonly Buffer[], size: number): Buffer[] {
  if (size <= 0 || size >= leaves.length) return [];
  return subproof(leaves, { from: 0, to: leaves.length, size, known: true });
}

function subproof(
  leaves: readonly Buffer[],
  part: { from: number; to: number; size: number; known: boolean },
): Buffer[] {
  const { from, to, size, known } = part;
  if (size === to - from) return known ? [] : [rootBetween(leaves, from, to)];
  const split = splitOf(to - from);
  if (size <= split) {
    return [
      ...subproof(leaves, { from, to: from + split, size, known }),
      rootBetween(leaves, from + split, to),
    ];
  }
  return [
    ...subproof(leaves, { from: from + split, to, size: size - split, known: false }),
    rootBetween(leaves, from, from + split),
  ];
}

export interface TreeHead {
  readonly size: number;
  readonly root: Buffer;
}

/** Whether the path shows that `later` grew out of `earlier` (RFC 9162, 2.1.4.2). */
export function isConsistent(earlier: TreeHead, later: TreeHead, path: readonly Buffer[]): boolean {
  if (earlier.size > later.size) return false;
  if (earlier.size === 0) return path.length === 0 && earlier.root.equals(emptyRoot());
  if (earlier.size === later.size) return path.length === 0 && earlier.root.equals(later.root);
  const isPowerOfTwo = Number.isInteger(Math.log2(earlier.size));
  const [first, ...rest] = isPowerOfTwo ? [earlier.root, ...path] : path;
  if (first === undefined) return false;
  let index = earlier.size - 1;
  let last = later.size - 1;
  const up = (): void => {
    index = Math.floor(index / 2);
    last = Math.floor(last / 2);
  };
  while (index % 2 === 1) up();
  let before = first;
  let after = first;
  for (const hash of rest) {
    if (last === 0) return false;
    if (index % 2 === 1 || index === last) {
      before = hashNode(hash, before);
      after = hashNode(hash, after);
      while (index % 2 === 0 && index !== 0) up();
    } else {
      after = hashNode(after, hash);
    }
    up();
  }
  return last === 0 && before.equals(earlier.root) && after.equals(later.root);
}

/** The roots of the complete subtrees of a growing tree, largest first: all that is needed to go on growing it. */
export type Peaks = readonly Buffer[];

/** The peaks after one more leaf; `size` is the number of leaves before. */
export function growPeaks(peaks: Peaks, size: number, leaf: Buffer): Buffer[] {
  const grown = [...peaks];
  let carry = leaf;
  for (let rest = size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
    carry = hashNode(grown.pop() as Buffer, carry);
  }
  return [...grown, carry];
}

/** The root of the tree that has these peaks. */
export function rootOfPeaks(peaks: Peaks): Buffer {
  const last = peaks.at(-1);
  if (last === undefined) return emptyRoot();
  return peaks.slice(0, -1).reduceRight((root, peak) => hashNode(peak, root), last);
}
