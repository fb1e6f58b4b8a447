import { pointerPart, refuseField } from './refusal.ts';

/** Stands where the value of a header would, in whatever shows an endpoint. */
export const NOT_SHOWN = '(not shown)';

const MAX_HEADERS = 32;
const MAX_NAME_LENGTH = 100;
const MAX_VALUE_LENGTH = 4096;
const MAX_TOTAL_LENGTH = 8192;

/** Names that are ours, or that say how the request travels. */
const RESERVED = new Set([
  'accept-encoding',
  'baggage',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'idempotency-key',
  'keep-alive',
  'te',
  'traceparent',
  'tracestate',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-delivery-attempt',
  'x-signature-256',
]);
const RESERVED_PREFIXES = ['webhook-', 'proxy-'];

/** A header name (RFC 9110, section 5.1). */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Visible ASCII with spaces and tabs inside. Narrower than RFC 9110: what is beyond it differs from client to client. */
const VALUE = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/;

/**
 * The headers an endpoint adds to every call.
 *
 * @throws Refusal `invalid_request` at `/headers/<name>`
 */
export function parseEndpointHeaders(headers: Record<string, string>): Record<string, string> {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) throw refuseField('/headers', `at most ${MAX_HEADERS} headers`);
  const seen = new Set<string>();
  let total = 0;
  for (const [name, value] of entries) {
    const wrong = judgeHeader(name, value) ?? (seen.has(name.toLowerCase()) ? 'is given twice' : undefined);
    if (wrong !== undefined) throw refuseField(`/headers/${pointerToken(name)}`, `header ${wrong}`);
    seen.add(name.toLowerCase());
    total += name.length + value.length;
  }
  if (total > MAX_TOTAL_LENGTH) {
    throw refuseField('/headers', `names and values together exceed ${MAX_TOTAL_LENGTH} characters`);
  }
  return Object.fromEntries(entries);
}

/** What is wrong with a header, or undefined. */
function judgeHeader(name: string, value: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !TOKEN.test(name)) return 'name is not a valid HTTP header name';
  const lower = name.toLowerCase();
  if (RESERVED.has(lower) || RESERVED_PREFIXES.some((prefix) => lower.startsWith(prefix))) {
    return 'is reserved and cannot be set';
  }
  if (typeof value !== 'string' || !VALUE.test(value)) {
    return 'value must be visible ASCII characters, with spaces only inside';
  }
  // Whoever reads an endpoint, edits it and sends it back would lose the credential to this text.
  if (value === NOT_SHOWN)
    return 'value is the text that stands for one that is not shown: leave the header out to keep it, or give its value';
  if (value.length > MAX_VALUE_LENGTH) return `value is longer than ${MAX_VALUE_LENGTH} characters`;
  return undefined;
}

/** RFC 6901; a name that is no header name may hold anything, so what cannot be printed is left out. */
function pointerToken(name: string): string {
  const printable = name.slice(0, MAX_NAME_LENGTH).replace(/[^ -~]/g, '?');
  return pointerPart(printable);
}
