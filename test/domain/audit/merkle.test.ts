import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  emptyRoot,
  growPeaks,
  hashLeaf,
  isConsistent,
  rootOf,
  rootOfInclusion,
  rootOfPeaks,
} from '../../../src/domain/audit/merkle.ts';
import {
  consistencySpans,
  growTree,
  inclusionSpans,
  leavesFor,
  pathOf,
} from '../../../src/domain/audit/merkle-paths.ts';

const leavesOf = (size: number): Buffer[] => Array.from({ length: size }, (_, i) => hashLeaf(`leaf ${i}`));

const inclusionPath = (leaves: readonly Buffer[], index: number): Buffer[] =>
  pathOf(growTree(leaves), inclusionSpans({ index, size: leaves.length }));
const consistencyPath = (leaves: readonly Buffer[], earlier: number): Buffer[] =>
  pathOf(growTree(leaves), consistencySpans({ earlier, later: leaves.length }));

/** The definition of RFC 9162, 2.1.1, word for word and slow. */
function definition(leaves: readonly Buffer[]): Buffer {
  const sha256 = (...parts: Buffer[]): Buffer =>
    parts.reduce((h, p) => h.update(p), createHash('sha256')).digest();
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leaves[0] as Buffer;
  let k = 1;
  while (2 * k < leaves.length) k = 2 * k;
  return sha256(Buffer.from([1]), definition(leaves.slice(0, k)), definition(leaves.slice(k)));
}

test('hashes the trees of the certificate transparency test vectors to their known roots', () => {
  // The eight inputs and roots that implementations of RFC 6962 and 9162 have in common.
  const inputs = [
    '',
    '00',
    '10',
    '2021',
    '3031',
    '40414243',
    '5051525354555657',
    '606162636465666768696a6b6c6d6e6f',
  ];
  const leaves = inputs.map((hex) => hashLeaf(Buffer.from(hex, 'hex')));
  const roots = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => rootOf(leaves.slice(0, n)).toString('hex'));
  expect(roots[0]).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d');
  expect(roots[1]).toBe('fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125');
  expect(roots[2]).toBe('aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77');
  expect(roots[7]).toBe('5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328');
  expect(emptyRoot().toString('hex')).toBe(
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  );
});

test('hashes every tree as the definition does, and the same by growing it leaf by leaf', () => {
  let peaks: Buffer[] = [];
  for (let size = 0; size < 70; size += 1) {
    const leaves = leavesOf(size);
    expect(rootOf(leaves).equals(definition(leaves))).toBe(true);
    expect(rootOfPeaks(peaks).equals(rootOf(leaves))).toBe(true);
    peaks = growPeaks(peaks, size, hashLeaf(`leaf ${size}`));
  }
});

test('proves every leaf of every small tree, and no other leaf at its place', () => {
  for (let size = 1; size <= 33; size += 1) {
    const leaves = leavesOf(size);
    const root = rootOf(leaves);
    for (let index = 0; index < size; index += 1) {
      const path = inclusionPath(leaves, index);
      const leaf = leaves[index] as Buffer;
      expect(rootOfInclusion(leaf, { index, size }, path)?.equals(root)).toBe(true);
      expect(rootOfInclusion(hashLeaf('other'), { index, size }, path)?.equals(root)).toBe(false);
      const other = (index + 1) % size;
      if (other !== index)
        expect(rootOfInclusion(leaf, { index: other, size }, path)?.equals(root) ?? false).toBe(false);
    }
  }
});

test('proves that a tree grew out of an earlier one, and finds one that did not', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 300 }), (size, more) => {
      const leaves = leavesOf(size + more);
      const earlier = { size, root: rootOf(leaves.slice(0, size)) };
      const later = { size: size + more, root: rootOf(leaves) };
      const path = consistencyPath(leaves, size);
      const forged = [hashLeaf('forged'), ...leaves.slice(1)];
      return (
        isConsistent(earlier, later, path) &&
        !isConsistent(earlier, { ...later, root: rootOf(forged) }, consistencyPath(forged, size))
      );
    }),
    { numRuns: 200 },
  );
});

test('takes no proof that is longer, shorter or in another order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 3, max: 200 }), fc.nat(), (size, at) => {
      const leaves = leavesOf(size);
      const index = at % size;
      const path = inclusionPath(leaves, index);
      const root = rootOf(leaves);
      const leaf = leaves[index] as Buffer;
      const leads = (p: readonly Buffer[]): boolean =>
        rootOfInclusion(leaf, { index, size }, p)?.equals(root) === true;
      return leads(path) && !leads(path.slice(1)) && !leads([...path, leaf]);
    }),
  );
});

test('makes each proof from a few leaves of a large tree', () => {
  const size = 5_000;
  const tree = growTree(leavesOf(size));
  fc.assert(
    fc.property(fc.nat(size - 1), (index) => {
      const inclusion = inclusionSpans({ index, size });
      const consistency = consistencySpans({ earlier: index, later: size });
      for (const spans of [inclusion, consistency]) {
        const needed = leavesFor(spans);
        // At most one for each of the 13 levels, and those that make up what is not complete at the right.
        expect(needed.length).toBeLessThanOrEqual(2 * 13);
        const known = new Map([...tree].filter(([leaf]) => needed.includes(leaf)));
        expect(pathOf(known, spans)).toEqual(pathOf(tree, spans));
      }
    }),
    { numRuns: 50 },
  );
});
