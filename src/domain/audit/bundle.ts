import Type, { type Static } from 'typebox';
import { canonicalJson, sha256Hex } from '../json.ts';
import {
  AttemptRow,
  DeliveryRow,
  EventRow,
  OperationRow,
  RecordRow,
  ReminderRow,
  TrailRow,
} from './facts.ts';
import type { Signer } from './seal.ts';

// One file with everything that is known of a question. It is canonical JSON (RFC 8785), so that there is exactly one way
// to write it: whatever is changed, white space included, is found.

const closed = { additionalProperties: false } as const;
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Path = Type.Array(Hash, { maxItems: 64 });
const Whole = Type.Integer({ minimum: 0 });
const TextOrNull = Type.Union([Type.String(), Type.Null()]);
const Kind = Type.Union([Type.Literal('reminder'), Type.Literal('event'), Type.Literal('operation')]);

/** What a seal says, which is what is signed. */
export const SealedStatement = Type.Object(
  {
    type: Type.Literal('duepost.seal'),
    v: Type.Literal(1),
    number: Type.Integer({ minimum: 1 }),
    sealed_at: Type.String(),
    key_id: Type.String({ pattern: '^[0-9a-f]{16}$' }),
    previous_sha256: Type.Union([Hash, Type.Null()]),
    history_root_sha256: Hash,
    leaves: Type.Integer({ minimum: 1 }),
    root_sha256: Hash,
    parts: Type.Array(
      Type.Object({ kind: Kind, month: Type.String(), leaves: Type.Integer({ minimum: 1 }) }, closed),
    ),
  },
  closed,
);

const Signature = Type.String({ pattern: '^[0-9a-f]{128}$' });

const BundledSeal = Type.Object(
  {
    statement: SealedStatement,
    signature: Signature,
    /** That it is part of the history of the last seal of the bundle; null for that one itself. */
    history: Type.Union([Type.Object({ inclusion: Path, consistency: Path }, closed), Type.Null()]),
  },
  closed,
);
export type BundledSeal = Static<typeof BundledSeal>;

const Place = Type.Object({ seal: Whole, index: Whole, path: Path }, closed);

const SealedDelivery = Type.Object(
  {
    ...Place.properties,
    trail_length: Whole,
    content_sha256: Hash,
    /** Of the audit record that was sealed; null: the trail alone was. */
    cycle: Type.Union([Whole, Type.Null()]),
  },
  closed,
);

const BundledDelivery = Type.Object(
  {
    delivery: DeliveryRow,
    source: Type.Union([ReminderRow, EventRow]),
    body: Type.Object(
      {
        sha256: Hash,
        data_offset: Whole,
        /** Base64 of the bytes that were sent; null: erased. */
        bytes: TextOrNull,
        erased_at: TextOrNull,
      },
      closed,
    ),
    trail: Type.Array(TrailRow),
    attempts: Type.Array(AttemptRow),
    records: Type.Array(RecordRow),
    seals: Type.Array(SealedDelivery),
  },
  closed,
);
export type BundledDelivery = Static<typeof BundledDelivery>;

const BundledOperation = Type.Object(
  { operation: OperationRow, seal: Type.Union([Place, Type.Null()]) },
  closed,
);
export type BundledOperation = Static<typeof BundledOperation>;

/** What a receiver says of a key: that it took effect, when, and for which bytes. Attached as it was handed over. */
const Receipt = Type.Object(
  {
    idempotency_key: Type.String(),
    effect_at: TextOrNull,
    body_sha256: TextOrNull,
    /** How often the receiver says that it took effect. */
    effects: Whole,
    /** The line as it was handed over. */
    text: Type.String(),
  },
  closed,
);
export type Receipt = Static<typeof Receipt>;

export const BundleContent = Type.Object(
  {
    format: Type.Literal('duepost.evidence'),
    v: Type.Literal(1),
    product: Type.String(),
    exported_at: Type.String(),
    exported_by: Type.String(),
    question: Type.Object({ contract_ref: TextOrNull, date: TextOrNull, delivery_id: TextOrNull }, closed),
    deliveries: Type.Array(BundledDelivery),
    operations: Type.Array(BundledOperation),
    /** By number, the last of the store included. */
    seals: Type.Array(BundledSeal),
    receipts: Type.Array(Receipt),
  },
  closed,
);
export type BundleContent = Static<typeof BundleContent>;

export const Bundle = Type.Object(
  {
    ...BundleContent.properties,
    /** SHA-256 of the canonical JSON of all else but the signature. */
    sha256: Hash,
    /** By whoever exported, of `duepost.evidence` and the hash; null: no key was at hand. */
    signature: Type.Union([
      Type.Object({ key_id: Type.String({ pattern: '^[0-9a-f]{16}$' }), ed25519: Signature }, closed),
      Type.Null(),
    ]),
  },
  closed,
);
export type Bundle = Static<typeof Bundle>;

/** The text of a bundle that its signature covers. */
export function signedText(sha256: string): string {
  return `duepost.evidence\n${sha256}`;
}

/** Closes a bundle: hashed, and signed if there is a key. */
export function closeBundle(content: BundleContent, signer: Signer | undefined): Bundle {
  const sha256 = sha256Hex(canonicalJson(content));
  const signature = signer && {
    key_id: signer.keyId,
    ed25519: signer.sign(signedText(sha256)).toString('hex'),
  };
  return { ...content, sha256, signature: signature ?? null };
}

/** The file of a bundle. */
export function bundleText(bundle: Bundle): string {
  return `${canonicalJson(bundle)}\n`;
}
