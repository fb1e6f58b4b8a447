import type { IncomingMessage } from 'node:http';
import { Refusal } from '../domain/refusal.ts';
import { hashKey } from '../pipeline/operate/keys.ts';
import { type ApiKey, markKeyUsed, type Scope } from '../store/keys.ts';
import type { Queryable } from '../store/pool.ts';

/** Whoever holds the key of a request. */
export interface Principal {
  readonly keyId: string;
  /** For the audit trail. */
  readonly actor: string;
  readonly scopes: ReadonlySet<Scope>;
}

export interface Authenticator {
  /** Throws a Refusal `unauthorized` unless the request carries exactly one key that is in force. */
  authenticate(request: IncomingMessage): Promise<Principal>;
}

/** How long a key that was in force is taken as such without asking: bounds how late a revocation acts. */
const TRUSTED_MS = 2_000;
const MAX_REMEMBERED = 10_000;

const BEARER = /^bearer ([A-Za-z0-9_~+/.=-]{1,200})$/i;

/**
 * Finds keys by their SHA-256: the key itself is compared with nothing, so no comparison tells anything about it.
 *
 * Only keys that are in force are remembered, for two seconds; requests that come at once ask once.
 */
export function createAuthenticator(db: Queryable): Authenticator {
  const known = new Map<string, { readonly principal: Promise<Principal>; readonly untilMs: number }>();

  function find(key: string): Promise<Principal> {
    const sha256 = hashKey(key);
    const name = sha256.toString('base64');
    const remembered = known.get(name);
    if (remembered !== undefined && performance.now() < remembered.untilMs) return remembered.principal;
    const principal = ask(sha256);
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(name, { principal, untilMs: performance.now() + TRUSTED_MS });
    principal.catch(() => known.delete(name));
    return principal;
  }

  async function ask(sha256: Buffer): Promise<Principal> {
    const apiKey = await markKeyUsed(db, sha256);
    if (apiKey === undefined) throw new Refusal('unauthorized', 'the API key is unknown, expired or revoked');
    return toPrincipal(apiKey);
  }

  return {
    async authenticate(request) {
      return find(readKey(request.rawHeaders));
    },
  };
}

/** Throws a Refusal `forbidden` that names the scope, unless the principal has one of those that allow it. */
export function requireScope({ scopes }: Principal, allowed: readonly Scope[]): void {
  if (allowed.some((scope) => scopes.has(scope))) return;
  throw new Refusal('forbidden', `the API key needs the scope ${allowed.join(' or ')}`);
}

/** The raw headers, because Node keeps only the first of several. */
function readKey(rawHeaders: readonly string[]): string {
  const values = rawHeaders.filter(
    (_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === 'authorization',
  );
  const [value, ...others] = values;
  const key = value === undefined ? undefined : BEARER.exec(value.trim())?.[1];
  if (key === undefined || others.length > 0) {
    throw new Refusal('unauthorized', 'send one header Authorization: Bearer <API key>');
  }
  return key;
}

/** An admin may everything; whoever operates must be able to look. */
function toPrincipal({ keyId, name, scopes }: ApiKey): Principal {
  const implied: Scope[] = scopes.includes('admin') ? ['publish', 'read', 'operate'] : [];
  if (scopes.includes('operate')) implied.push('read');
  return { keyId, actor: `key:${name} (${keyId})`, scopes: new Set([...scopes, ...implied]) };
}
