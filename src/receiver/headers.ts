/** What every framework has: a Web `Headers` object or a record; names in any case, a repeated header as an array. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

function isWebHeaders(headers: HeaderSource): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

/**
 * One header by its lower-case name; undefined when it is absent.
 * A header sent twice is one value joined by `, ` (RFC 9110, 5.3), which no header of ours can be mistaken for.
 */
export function readHeader(headers: HeaderSource, name: string): string | undefined {
  if (isWebHeaders(headers)) return headers.get(name) ?? undefined;
  const value = headers[name] ?? Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1];
  return value === undefined || typeof value === 'string' ? value : value.join(', ');
}

/** The attempt number of `X-Delivery-Attempt`; undefined when it is absent or not a number. */
export function readAttempt(headers: HeaderSource): number | undefined {
  const text = readHeader(headers, 'x-delivery-attempt');
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/**
 * The key of `Idempotency-Key`, bare or as the quoted string of the IETF draft.
 *
 * @returns undefined when it is absent, `false` when it is empty, longer than 255 characters, sent twice or holds
 *   anything but visible ASCII without comma, quote and backslash
 */
export function readIdempotencyKey(headers: HeaderSource): string | false | undefined {
  const text = readHeader(headers, 'idempotency-key');
  if (text === undefined) return undefined;
  const key = /^"(.*)"$/.exec(text)?.[1] ?? text;
  return /^[!#-+\--[\]-~]{1,255}$/.test(key) ? key : false;
}
