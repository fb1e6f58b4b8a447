import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checkChain, hashEntry, type TrailEntry } from '../../../src/domain/audit/chain.ts';
import { type DeliveryLeaf, deliveryLeafText } from '../../../src/domain/audit/facts.ts';
import { hashLeaf, isConsistent, rootOf, rootOfInclusion } from '../../../src/domain/audit/merkle.ts';
import {
  consistencySpans,
  growTree,
  inclusionSpans,
  pathOf,
} from '../../../src/domain/audit/merkle-paths.ts';
import {
  createSignatureCheck,
  createSigner,
  hashSeal,
  publicKeyOf,
  type SealStatement,
  sealText,
} from '../../../src/domain/audit/seal.ts';

interface Vectors {
  readonly chain: {
    readonly entries: readonly Omit<TrailEntry, 'sha256'>[];
    readonly sha256: readonly string[];
  };
  readonly leaf: {
    readonly content: DeliveryLeaf & { leaf: string };
    readonly text: string;
    readonly sha256: string;
  };
  readonly tree: {
    readonly inputs: readonly string[];
    readonly root: string;
    readonly inclusion: readonly (readonly string[])[];
    readonly consistency: readonly {
      readonly size: number;
      readonly root: string;
      readonly path: readonly string[];
    }[];
  };
  readonly key: { readonly private: string; readonly public: string; readonly key_id: string };
  readonly seals: readonly {
    readonly statement: SealStatement;
    readonly text: string;
    readonly sha256: string;
    readonly signature: string;
  }[];
}

// Computed by conformance/evidence.py, which shares no code with what is tested here.
const vectors = JSON.parse(
  readFileSync(new URL('../../../conformance/bundle-vectors.json', import.meta.url), 'utf8'),
) as Vectors;
const hex = (bytes: Buffer): string => bytes.toString('hex');
const bytes = (text: string): Buffer => Buffer.from(text, 'hex');

const inclusionPath = (leaves: readonly Buffer[], index: number): Buffer[] =>
  pathOf(growTree(leaves), inclusionSpans({ index, size: leaves.length }));
const consistencyPath = (leaves: readonly Buffer[], earlier: number): Buffer[] =>
  pathOf(growTree(leaves), consistencySpans({ earlier, later: leaves.length }));

test('chains entries as the vectors do', () => {
  const { entries, sha256 } = vectors.chain;
  const hashed = entries.map((entry, i) => ({ ...entry, sha256: sha256[i] as string }));
  expect(checkChain(hashed)).toEqual([]);
  expect(hex(hashEntry(Buffer.alloc(0), entries[0] as TrailEntry))).toBe(sha256[0]);
});

test('writes and hashes a leaf as the vectors do', () => {
  const { leaf: _, ...content } = vectors.leaf.content;
  expect(deliveryLeafText(content)).toBe(vectors.leaf.text);
  expect(hex(hashLeaf(vectors.leaf.text))).toBe(vectors.leaf.sha256);
});

test('makes the proofs of the vectors, and believes them', () => {
  const { inputs, root, inclusion, consistency } = vectors.tree;
  const leaves = inputs.map((input) => hashLeaf(input));
  const size = leaves.length;
  expect(hex(rootOf(leaves))).toBe(root);
  expect(leaves.map((_, i) => inclusionPath(leaves, i).map(hex))).toEqual(inclusion);
  inclusion.forEach((path, index) => {
    const found = rootOfInclusion(leaves[index] as Buffer, { index, size }, path.map(bytes));
    expect(found && hex(found)).toBe(root);
  });
  for (const earlier of consistency) {
    expect(consistencyPath(leaves, earlier.size).map(hex)).toEqual(earlier.path);
    const from = { size: earlier.size, root: bytes(earlier.root) };
    expect(isConsistent(from, { size, root: bytes(root) }, earlier.path.map(bytes))).toBe(true);
  }
});

test('writes, hashes and signs seals as the vectors do', () => {
  const signer = createSigner(vectors.key.private);
  expect(signer.keyId).toBe(vectors.key.key_id);
  expect(publicKeyOf(vectors.key.private)).toBe(vectors.key.public);
  const check = createSignatureCheck([vectors.key.public]);
  for (const { statement, text, sha256, signature } of vectors.seals) {
    expect(sealText(statement)).toBe(text);
    expect(hex(hashSeal(text))).toBe(sha256);
    expect(hex(signer.sign(text))).toBe(signature);
    expect(check(statement.key_id, text, bytes(signature))).toBe(true);
  }
});
