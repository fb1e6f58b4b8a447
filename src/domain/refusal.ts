/** Codes that callers may rely on; each entrance maps every one of them. */
export const REFUSAL_CODES = [
  'invalid_request',
  'not_found',
  'unauthorized',
  'forbidden',
  'idempotency_key_missing',
  'idempotency_key_reused',
  'unknown_jurisdiction',
  'time_zone_required',
  'window_closed',
  'endpoint_disabled',
  'url_not_allowed',
  'payload_too_large',
  'already_delivered',
  'ambiguous_reference',
  'transition_not_allowed',
  'unsupported_version',
  'unsupported_command',
  'name_taken',
  'rate_limited',
  'too_broad',
] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** One member of a request that is wrong: a JSON pointer (RFC 6901) and what to do about it. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

/** A request that is understood and will not be carried out; the text is for the caller. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly faults: readonly Fault[];

  constructor(code: RefusalCode, detail: string, faults: readonly Fault[] = []) {
    super(detail);
    this.name = 'Refusal';
    this.code = code;
    this.faults = faults;
  }
}

/** A member's name as a part of a JSON pointer (RFC 6901). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** A refusal of one member of the request. */
export function refuseField(path: string, message: string, code: RefusalCode = 'invalid_request'): Refusal {
  return new Refusal(code, message, [{ path, message }]);
}
