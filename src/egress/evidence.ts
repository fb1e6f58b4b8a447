import { hash } from 'node:crypto';
import { escapeUnprintable } from '../runtime/scrub.ts';

/** How much of a response body is read; the socket is dropped after it. */
export const MAX_BODY_BYTES = 8192;

/** What all headers of a response may measure; beyond it the answer counts as broken. */
export const MAX_HEADER_BYTES = 16_384;

const MAX_EXCERPT_LENGTH = 2048;
const MAX_HEADER_LENGTH = 256;
const MAX_DETAIL_LENGTH = 300;

/** The longest form of a Retry-After that means anything is under 40 characters. */
const MAX_RETRY_AFTER_LENGTH = 100;

/** Headers that are kept, found by the length of their name first: most of what a server sends is never decoded. */
const KEPT = ['date', 'server', 'retry-after', 'content-type', 'x-request-id', 'webhook-receipt'];
const LENGTHS = new Set([...KEPT, 'location'].map((name) => name.length));

/** Names and values in turn, as the wire had them (ISO 8859-1). */
export type RawHeaders = readonly (string | Buffer)[];

export interface Head {
  readonly headers: Record<string, string>;
  readonly retryAfter: string | undefined;
  readonly location: string | undefined;
}

/** What is kept of response headers. Of a name that comes twice the first is kept, and no retry hint is taken. */
export function readHead(raw: RawHeaders): Head {
  const headers: Record<string, string> = {};
  let retryAfter: string | undefined;
  let retryAfterCount = 0;
  let location: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string | Buffer;
    if (!LENGTHS.has(name.length)) continue;
    const lower = text(name).toLowerCase();
    const value = text(raw[i + 1] as string | Buffer);
    if (lower === 'location') location ??= value;
    if (!KEPT.includes(lower)) continue;
    headers[lower] ??= printable(value, MAX_HEADER_LENGTH);
    if (lower === 'retry-after') {
      retryAfterCount += 1;
      retryAfter = value;
    }
  }
  const usable = retryAfterCount === 1 && (retryAfter as string).length <= MAX_RETRY_AFTER_LENGTH;
  return { headers, retryAfter: usable ? retryAfter : undefined, location };
}

/** The first bytes of a body as text, and their hash; an empty body has neither. */
export function readBody(chunks: readonly Buffer[]): {
  responseExcerpt?: string;
  responseBodySha256?: string;
} {
  if (chunks.length === 0) return {};
  const all = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
  const bytes = all.subarray(0, MAX_BODY_BYTES);
  return {
    responseExcerpt: printable(bytes.toString('utf8'), MAX_EXCERPT_LENGTH),
    responseBodySha256: hash('sha256', bytes),
  };
}

/**
 * Says where a redirect points. Segments that the endpoint's own path has too are shown as `…`, and there is no query:
 * both may hold secrets.
 */
export function describeRedirect(location: string | undefined, from: URL): string {
  if (location === undefined || !URL.canParse(location, from.href)) return 'the answer names no new address';
  const to = new URL(location, from);
  const own = new Set(from.pathname.split('/').filter((segment) => segment !== ''));
  const path = to.pathname.split('/').map((segment) => (own.has(segment) ? '…' : segment));
  return detail(`update the URL to ${to.protocol}//${to.host}${path.join('/')}`);
}

export function detail(value: string): string {
  return printable(value, MAX_DETAIL_LENGTH);
}

/** Text from outside, made safe for a log line, a terminal and a database; at most `maxLength` UTF-16 units. */
function printable(value: string, maxLength: number): string {
  const escaped = escapeUnprintable(value.slice(0, maxLength));
  // No half of an escape or of a surrogate pair at the end.
  return escaped.slice(0, maxLength).replace(/\\(u[0-9a-f]{0,3})?$|[\ud800-\udbff]$/, '');
}

function text(value: string | Buffer): string {
  return typeof value === 'string' ? value : value.toString('latin1');
}
