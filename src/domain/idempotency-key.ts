import { refuseField } from './refusal.ts';

const FORM = /^[A-Za-z0-9_\-:./]{1,200}$/;
const REMEDY = 'must be 1 to 200 characters of A–Z a–z 0–9 _ - : . /';

/** A producer's key as it is; throws a Refusal for anything that could not travel as a bare header value. */
export function parseIdempotencyKey(text: string, path: string): string {
  if (FORM.test(text)) return text;
  throw refuseField(path, `the idempotency key ${REMEDY}`);
}

/**
 * The key of an `Idempotency-Key` header: bare, or a structured field string (RFC 8941 section 3.3.3), which is what
 * draft-ietf-httpapi-idempotency-key-header asks for. Both forms of one key are the same key.
 */
export function parseIdempotencyHeader(value: string): string {
  const text = value.trim();
  const quoted = /^"(.*)"$/.exec(text)?.[1];
  return parseIdempotencyKey(quoted ?? text, '/idempotency_key');
}
