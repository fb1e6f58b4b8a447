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

/** The largest power of two below `size`, which is above 1: how many leaves the left half of a tree has. */
export function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
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

/**
 * The roots of all subtrees that one more leaf completes, smallest first: of the leaf alone, of two leaves, of four …
 *
 * @param size  the number of leaves before, to which the peaks belong
 * @throws RangeError when the peaks are not those of a tree of that size
 */
export function completeSubtrees(peaks: Peaks, size: number, leaf: Buffer): Buffer[] {
  const roots = [leaf];
  let root = leaf;
  for (let rest = size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
    const peak = peaks.at(-roots.length);
    if (peak === undefined)
      throw new RangeError(`a tree of ${size} leaves has more than ${peaks.length} peaks`);
    root = hashNode(peak, root);
    roots.push(root);
  }
  return roots;
}

/** Whether a tree of that size has so many peaks: one for each bit of its size. */
export function arePeaksOf(peaks: Peaks, size: number): boolean {
  return peaks.length === size.toString(2).replaceAll('0', '').length;
}

/** The peaks after one more leaf; otherwise as `completeSubtrees`. */
export function growPeaks(peaks: Peaks, size: number, leaf: Buffer): Buffer[] {
  const roots = completeSubtrees(peaks, size, leaf);
  return [...peaks.slice(0, peaks.length - roots.length + 1), ...roots.slice(-1)];
}

/** The root of the tree that has these peaks. */
export function rootOfPeaks(peaks: Peaks): Buffer {
  const last = peaks.at(-1);
  if (last === undefined) return emptyRoot();
  return peaks.slice(0, -1).reduceRight((root, peak) => hashNode(peak, root), last);
}
