import { createHmac } from 'node:crypto';
import { refuseField } from './refusal.ts';

const PREFIX = 'whsec_';
const MIN_BYTES = 24;
const MAX_BYTES = 64;

/** How long an old secret goes on signing beside a new one, where nothing else is said. */
export const SECRET_OVERLAP_SECONDS = 24 * 3600;
/** The longest it may: whoever has the old secret can sign as long. */
export const MAX_SECRET_OVERLAP_SECONDS = 30 * 24 * 3600;

export interface SignatureHeaders {
  'X-Signature-256': string;
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
}

/**
 * The key bytes of a secret: standard base64 of 24 to 64 bytes, with or without `whsec_` before it, which the Standard
 * Webhooks libraries read alike. Throws a Refusal, which never repeats the secret, for anything they would read
 * differently.
 */
export function parseSecret(text: string): Buffer {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text;
  const bytes = Buffer.from(encoded, 'base64');
  // Node skips what is not base64; only text that comes back the same was read in full.
  if (bytes.toString('base64') !== encoded) {
    throw refuseField(
      '/secret',
      'secret must be whsec_ followed by padded standard base64, without white space',
    );
  }
  if (bytes.length < MIN_BYTES || bytes.length > MAX_BYTES) {
    throw refuseField(
      '/secret',
      `secret must hold ${MIN_BYTES} to ${MAX_BYTES} bytes; generate one or leave it out`,
    );
  }
  return bytes;
}

/** The secret as it is shown: `whsec_` and base64. */
export function formatSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/**
 * The headers that prove who sent a body: Standard Webhooks, and a plain HMAC-SHA256 (RFC 2104) of the body in hex.
 *
 * @param input.timestampSeconds  Unix seconds of this attempt
 * @param input.secrets  every active secret, newest first; throws RangeError when there is none
 */
export function signatureHeaders(input: {
  deliveryId: string;
  timestampSeconds: number;
  body: Buffer;
  secrets: readonly Buffer[];
}): SignatureHeaders {
  const { deliveryId, timestampSeconds, body, secrets } = input;
  const newest = secrets[0];
  if (newest === undefined) throw new RangeError('a body cannot be signed without a secret');
  const signed = `${deliveryId}.${timestampSeconds}.`;
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(signed).update(body).digest('base64')}`,
  );
  return {
    'X-Signature-256': createHmac('sha256', newest).update(body).digest('hex'),
    'webhook-id': deliveryId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}
