import { createHmac, timingSafeEqual } from 'node:crypto';
import { Refusal } from '../domain/refusal.ts';
import { parseSecret } from '../domain/signing.ts';
import { type HeaderSource, readHeader } from './headers.ts';

/** Why a call is not believed. `bad_secret` is the receiver's own mistake, the others are the caller's. */
export type VerificationCode =
  | 'missing_header'
  | 'bad_timestamp'
  | 'timestamp_too_old'
  | 'timestamp_too_new'
  | 'unsupported_signature'
  | 'no_matching_signature'
  | 'bad_secret';

export class VerificationError extends Error {
  readonly code: VerificationCode;

  constructor(code: VerificationCode, message: string) {
    super(message);
    this.name = 'VerificationError';
    this.code = code;
  }
}

/**
 * Which signature is believed. There is no falling back from one to the other: whoever could strip the
 * `webhook-*` headers would get rid of the timestamp.
 */
export type Scheme = 'standard-webhooks' | 'x-signature-256';

export interface Verification {
  readonly headers: HeaderSource;
  /** The bytes as they came; parsed and written again they are other bytes. */
  readonly body: Uint8Array;
  /** `whsec_` + base64 of 24 to 64 bytes, with or without the prefix; several while one is being replaced. */
  readonly secret: string | readonly string[];
  readonly now: Date;
  /** Default `standard-webhooks`. */
  readonly scheme?: Scheme | undefined;
  /** How far `webhook-timestamp` may be from `now`, either way; default 300. */
  readonly toleranceSeconds?: number | undefined;
}

/** What a verified call is known to say; `deliveryId` is undefined where the scheme does not sign it. */
export interface Verified {
  readonly deliveryId: string | undefined;
}

function parseKeys(secret: string | readonly string[]): readonly Buffer[] {
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (secrets.length === 0) throw new VerificationError('bad_secret', 'no secret is given');
  try {
    return secrets.map(parseSecret);
  } catch (error) {
    throw error instanceof Refusal ? new VerificationError('bad_secret', error.message) : error;
  }
}

function requireHeader(headers: HeaderSource, name: string): string {
  const value = readHeader(headers, name);
  if (!value) throw new VerificationError('missing_header', `the header ${name} is missing`);
  return value;
}

function checkTimestamp(text: string, now: Date, toleranceSeconds: number): void {
  if (!/^\d{1,15}$/.test(text)) {
    throw new VerificationError('bad_timestamp', 'webhook-timestamp is not a number of seconds');
  }
  const ageSeconds = Math.floor(now.getTime() / 1000) - Number(text);
  if (ageSeconds > toleranceSeconds) {
    throw new VerificationError('timestamp_too_old', `webhook-timestamp is ${ageSeconds} s old`);
  }
  if (ageSeconds < -toleranceSeconds) {
    throw new VerificationError('timestamp_too_new', `webhook-timestamp is ${-ageSeconds} s ahead`);
  }
}

/** Compares every candidate with every key, whatever matched before: the time tells nothing about which. */
function matchesAny(
  keys: readonly Buffer[],
  parts: readonly (string | Uint8Array)[],
  given: readonly Buffer[],
): boolean {
  let matched = false;
  for (const key of keys) {
    const hmac = createHmac('sha256', key);
    for (const part of parts) hmac.update(part);
    const expected = hmac.digest();
    for (const signature of given) {
      // timingSafeEqual throws on unequal lengths; the length is no secret.
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) matched = true;
    }
  }
  return matched;
}

function verifyStandard(call: Verification, keys: readonly Buffer[]): Verified {
  const id = requireHeader(call.headers, 'webhook-id');
  const timestamp = requireHeader(call.headers, 'webhook-timestamp');
  const signatures = requireHeader(call.headers, 'webhook-signature');
  checkTimestamp(timestamp, call.now, call.toleranceSeconds ?? 300);
  const given = signatures
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => Buffer.from(signature.slice('v1,'.length), 'base64'));
  if (given.length === 0) {
    throw new VerificationError(
      'unsupported_signature',
      'webhook-signature holds no signature that starts with "v1,"',
    );
  }
  if (!matchesAny(keys, [`${id}.${timestamp}.`, call.body], given)) {
    throw new VerificationError(
      'no_matching_signature',
      'no signature matches: another secret, or other bytes',
    );
  }
  return { deliveryId: id };
}

function verifyBody(call: Verification, keys: readonly Buffer[]): Verified {
  const signature = requireHeader(call.headers, 'x-signature-256');
  if (!/^[0-9a-f]{64}$/.test(signature)) {
    throw new VerificationError(
      'unsupported_signature',
      'X-Signature-256 is not 64 lower-case hexadecimal digits',
    );
  }
  if (!matchesAny(keys, [call.body], [Buffer.from(signature, 'hex')])) {
    throw new VerificationError(
      'no_matching_signature',
      'X-Signature-256 does not match: another secret, or other bytes',
    );
  }
  return { deliveryId: undefined };
}

/**
 * Decides whether a call comes from somebody who knows a secret, and is recent.
 *
 * `standard-webhooks` follows the Standard Webhooks specification 1.0 (`webhook-id`, `webhook-timestamp`, any of the
 * `v1` signatures with any of the secrets). `x-signature-256` is the HMAC of the body alone: it does not age.
 *
 * @throws VerificationError whose `code` names the reason
 */
export function verify(call: Verification): Verified {
  if (!(call.body instanceof Uint8Array)) {
    throw new TypeError('the body must be the raw bytes of the request, not parsed or decoded');
  }
  const keys = parseKeys(call.secret);
  return call.scheme === 'x-signature-256' ? verifyBody(call, keys) : verifyStandard(call, keys);
}
