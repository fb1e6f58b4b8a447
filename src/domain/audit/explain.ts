import { attachedReceipts } from './attached-receipts.ts';
import type { Bundle } from './bundle.ts';
import { sealing } from './sealing.ts';
import { story } from './story.ts';

/** What a sound bundle proves, and what no bundle can, in plain words. */
export interface Proof {
  readonly deliveries: readonly { readonly delivery_id: string; readonly says: readonly string[] }[];
  /**
   * Whether a key has signed all of it, as a file. Without that signature what is sealed is as it was, but deliveries,
   * operations and receipts may have been left out, and whatever is not sealed, receipts first of all, made up.
   */
  readonly vouched_for: boolean;
  readonly proves: readonly string[];
  readonly cannot: readonly string[];
}

/**
 * @param sealedTo  by delivery id, how many of its trail entries are sealed
 */
export function explain(bundle: Bundle, sealedTo: ReadonlyMap<string, number>): Proof {
  return {
    deliveries: bundle.deliveries.map((d) => ({
      delivery_id: d.delivery.delivery_id,
      says: [
        ...story(d),
        ...attachedReceipts(bundle, d),
        ...sealing(bundle, d, sealedTo.get(d.delivery.delivery_id) ?? 0),
      ],
    })),
    vouched_for: bundle.signature !== null,
    proves: proves(bundle, sealedTo),
    cannot: cannot(bundle),
  };
}

function proves(bundle: Bundle, sealedTo: ReadonlyMap<string, number>): string[] {
  const head = bundle.seals.at(-1)?.statement;
  const isSealed =
    bundle.operations.every((o) => o.seal !== null) &&
    bundle.deliveries.every((d) => sealedTo.get(d.delivery.delivery_id) === d.trail.length);
  const recorded =
    'bytes, addresses, times and answers above are what this installation recorded, in this order; the headers of each call stand in the trail within the file.';
  return [
    bundle.signature !== null
      ? `The ${recorded}`
      : isSealed
        ? `Each delivery for itself, because it is sealed: the ${recorded}`
        : 'Nothing of what is not sealed: it fits together, but no key has signed it, so anybody could have written it.',
    ...(head === undefined
      ? []
      : [
          `What is sealed was on record when its seal was signed with the key ${head.key_id}; the seals are one unbroken history up to seal ${head.number}.`,
        ]),
    ...(bundle.signature === null
      ? []
      : [`This file is as it was exported, by the signature of the key ${bundle.signature.key_id}.`]),
  ];
}

function cannot(bundle: Bundle): string[] {
  return [
    bundle.receipts.length === 0
      ? "That the receiver acted on it, and exactly once: that rests on the receiver's own record of idempotency keys, of which nothing is attached."
      : "That the receiver's record, which is attached, is true: it is the receiver's word.",
    'That the clock was right: instants are those of the database.',
    'That what is said to have happened before a seal was made happened then: a seal proves what was on record when it was made, not since when.',
    'That whoever runs the database did not rewrite it and have it sealed again, or whoever holds the signing key make up another history: compare with seals that were published at the time (--published).',
    ...(bundle.signature === null
      ? [
          'That it is whole, who exported it and what receivers say: this file is not signed, so that deliveries, operations and receipts may have been left out, and receipts changed or made up.',
        ]
      : []),
  ];
}
