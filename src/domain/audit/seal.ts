import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { idTime } from '../ids.ts';
import { canonicalJson } from '../json.ts';

/** How many leaves of a seal belong to one month of one kind; they stand in this order. */
export interface SealPart {
  readonly kind: 'event' | 'operation' | 'reminder';
  /** `2026-10`. */
  readonly month: string;
  readonly leaves: number;
}

/** What is signed: a batch of evidence, and everything sealed before it. */
export interface SealStatement {
  readonly type: 'duepost.seal';
  readonly v: 1;
  /** From 1, without gaps. */
  readonly number: number;
  readonly sealed_at: string;
  readonly key_id: string;
  /** Of the seal before; null for the first. */
  readonly previous_sha256: string | null;
  /** Root of the tree whose leaves are the hashes of all seals before, in order. */
  readonly history_root_sha256: string;
  readonly leaves: number;
  readonly root_sha256: string;
  readonly parts: readonly SealPart[];
}

/** The bytes that are signed and hashed. */
export function sealText(statement: SealStatement): string {
  return canonicalJson(statement);
}

/** What the next seal refers to, and the history's leaf: SHA-256 with the prefix of a leaf. */
export function hashSeal(text: string): Buffer {
  return createHash('sha256')
    .update(Buffer.from([0x00]))
    .update(text)
    .digest();
}

/** A key that signs, with its id. */
export interface Signer {
  readonly keyId: string;
  readonly sign: (text: string) => Buffer;
}

/** A signer of an Ed25519 private key in PEM (PKCS#8). */
export function createSigner(privateKeyPem: string): Signer {
  const key = createPrivateKey(privateKeyPem);
  return { keyId: keyIdOf(createPublicKey(key)), sign: (text) => sign(null, Buffer.from(text), key) };
}

/** The public half of a private key, in PEM (SPKI). */
export function publicKeyOf(privateKeyPem: string): string {
  return createPublicKey(createPrivateKey(privateKeyPem)).export({ type: 'spki', format: 'pem' }).toString();
}

/** The first 16 hex digits of the SHA-256 of a public key (SPKI, DER). */
export function keyIdOf(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 16);
}

/** Why a signature was not found to be good. */
export interface Doubt {
  readonly what: string;
  /** The key that it names, where that is not among those given. */
  readonly unknownKey?: string;
}

/** Checks signatures by the id of the key that made them. */
export type SignatureCheck = (keyId: string, text: string, signature: Buffer) => true | Doubt;

/** A check by public keys in PEM; an old key goes on checking what it has signed. Throws for what is no Ed25519 key. */
export function createSignatureCheck(publicKeysPem: readonly string[]): SignatureCheck {
  const keys = new Map(
    publicKeysPem.map((pem) => {
      const key = createPublicKey(pem);
      if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('not an Ed25519 key');
      return [keyIdOf(key), key] as const;
    }),
  );
  return (keyId, text, signature) => {
    const key = keys.get(keyId);
    if (key === undefined) {
      const what = `it is signed by the key ${keyId}, which is not among the given public keys (--public-key)`;
      return { what, unknownKey: keyId };
    }
    return (
      verify(null, Buffer.from(text), key, signature) || { what: 'its signature does not fit its content' }
    );
  };
}

/** The month in which an id was made, by UTC, as retention drops it; `0000-00` for text that is no id. */
export function monthOfId(id: string): string {
  try {
    return idTime(id).toISOString().slice(0, 7);
  } catch {
    return '0000-00';
  }
}
