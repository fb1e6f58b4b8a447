import type { Answer } from './store.ts';

const REFUSED = {
  missing_header: 400,
  bad_timestamp: 400,
  timestamp_too_old: 401,
  timestamp_too_new: 401,
  unsupported_signature: 401,
  no_matching_signature: 401,
  idempotency_key_missing: 400,
  idempotency_key_invalid: 400,
  in_progress: 409,
  idempotency_key_reused: 422,
} as const;

export type RefusedCode = keyof typeof REFUSED;

/**
 * `handled`: the handler ran and its answer is recorded. `declined`: it ran and answered something other than 2xx.
 * `replayed`: it ran before, this is the recorded answer. `refused`: nothing took effect, and `code` says why.
 */
export type Received =
  | { readonly kind: 'handled' | 'declined' | 'replayed'; readonly answer: Answer }
  | { readonly kind: 'refused'; readonly code: RefusedCode; readonly answer: Answer };

/** A refusal as problem+json (RFC 9457). */
export function refuse(code: RefusedCode, detail: string): Received {
  const status = REFUSED[code];
  const headers = { 'content-type': 'application/problem+json' };
  return {
    kind: 'refused',
    code,
    answer: { status, headers, body: JSON.stringify({ status, code, detail }) },
  };
}
