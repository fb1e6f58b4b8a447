import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts endpoint secrets at rest: AES-256-GCM under the master key, bound to the endpoint they belong to. */
export interface SecretBox {
  seal(endpointId: string, secret: Buffer): Buffer;
  /** Throws when no key that is configured opens it; the text names no secret. */
  open(endpointId: string, ciphertext: Buffer): Buffer;
  /** Whether it is encrypted under the master key in force. */
  isCurrent(endpointId: string, ciphertext: Buffer): boolean;
}

/** @param previousKeys  keys that may still have sealed something, while keys are rotated */
export function createSecretBox(masterKey: Buffer, previousKeys: readonly Buffer[] = []): SecretBox {
  return {
    seal(endpointId, secret) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', masterKey, nonce).setAAD(Buffer.from(endpointId));
      return Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
    },
    open(endpointId, ciphertext) {
      for (const key of [masterKey, ...previousKeys]) {
        const opened = tryOpen(key, endpointId, ciphertext);
        if (opened !== undefined) return opened;
      }
      throw new Error(`the secret of ${endpointId} was encrypted under a master key that is not configured`);
    },
    isCurrent: (endpointId, ciphertext) => tryOpen(masterKey, endpointId, ciphertext) !== undefined,
  };
}

function tryOpen(key: Buffer, endpointId: string, ciphertext: Buffer): Buffer | undefined {
  const decipher = createDecipheriv('aes-256-gcm', key, ciphertext.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(endpointId))
    .setAuthTag(ciphertext.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(ciphertext.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}
