import { completeSubtrees, growPeaks, rootOfPeaks, splitOf } from './merkle.ts';

// Proofs of RFC 9162 are made in two steps: which nodes of the tree belong to one, and the hashes of those. There are about
// two for each doubling of the tree, and each is made of few subtrees that are complete. So whoever keeps what each leaf
// completed needs no other leaf.

/** Leaves from `from` up to, not including, `to`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * By the number of a leaf, counted from 1: the roots of the subtrees that it completed (see `completeSubtrees`).
 * It may know only those leaves that a proof needs.
 */
export type Completed = ReadonlyMap<number, readonly Buffer[]>;

/** What each leaf of a tree completed; hashes every node once. */
export function growTree(leaves: readonly Buffer[]): Completed {
  const completed = new Map<number, Buffer[]>();
  let peaks: Buffer[] = [];
  leaves.forEach((leaf, size) => {
    completed.set(size + 1, completeSubtrees(peaks, size, leaf));
    peaks = growPeaks(peaks, size, leaf);
  });
  return completed;
}

/** The nodes that must be hashed together with a leaf, from the bottom up, to arrive at the root of the first `size`. */
export function inclusionSpans({ index, size }: { index: number; size: number }): Span[] {
  const spans: Span[] = [];
  let from = 0;
  let to = size;
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      spans.unshift({ from: middle, to });
      to = middle;
    } else {
      spans.unshift({ from, to: middle });
      from = middle;
    }
  }
  return spans;
}

/** The nodes that show that the tree of `earlier` leaves is a beginning of that of `later` (RFC 9162, 2.1.4.1). */
export function consistencySpans({ earlier, later }: { earlier: number; later: number }): Span[] {
  if (earlier <= 0 || earlier >= later) return [];
  const spans: Span[] = [];
  let from = 0;
  let to = later;
  while (earlier < to) {
    const middle = from + splitOf(to - from);
    if (earlier <= middle) {
      spans.unshift({ from: middle, to });
      to = middle;
    } else {
      spans.unshift({ from, to: middle });
      from = middle;
    }
  }
  // The checker knows the root of the earlier tree, so that it is not repeated where it is a node.
  return from === 0 ? spans : [{ from, to }, ...spans];
}

/** The complete subtrees of a node, largest first. */
function subtreesOf({ from, to }: Span): Span[] {
  const subtrees: Span[] = [];
  for (let at = from; at < to; ) {
    const end = at + 2 ** Math.floor(Math.log2(to - at));
    subtrees.push({ from: at, to: end });
    at = end;
  }
  return subtrees;
}

/** The numbers of the leaves that must be known in `Completed` for these nodes. */
export function leavesFor(spans: readonly Span[]): number[] {
  return [...new Set(spans.flatMap(subtreesOf).map(({ to }) => to))];
}

/**
 * The hashes of nodes, in their order: a path.
 *
 * @throws RangeError when `completed` does not know what is needed
 */
export function pathOf(completed: Completed, spans: readonly Span[]): Buffer[] {
  return spans.map((span) =>
    rootOfPeaks(
      subtreesOf(span).map(({ from, to }) => {
        const root = completed.get(to)?.[Math.log2(to - from)];
        if (root === undefined)
          throw new RangeError(`leaf ${to} completed no subtree of ${to - from} leaves`);
        return root;
      }),
    ),
  );
}
