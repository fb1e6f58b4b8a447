import type pg from 'pg';
import type { TlsFacts } from '../domain/endpoint-tls.ts';
import { ENDPOINT_COLUMNS, type Endpoint, type EndpointRow, toEndpoint } from './endpoints.ts';
import type { Queryable } from './pool.ts';

/** An endpoint's own certificates as PEM, and the key to the client certificate, encrypted. */
export interface StoredTls {
  readonly ca: string | undefined;
  readonly certificate: string | undefined;
  readonly key: Buffer | undefined;
}

export interface TlsRow {
  readonly tls_ca: string | null;
  readonly tls_certificate: string | null;
  readonly tls_key: Buffer | null;
}

/** Of `endpoint e`; certificates are long, so they are read only where they are used. */
export const TLS_COLUMNS = 'e.tls_ca, e.tls_certificate, e.tls_key';

export function toStoredTls(row: TlsRow): StoredTls {
  return {
    ca: row.tls_ca ?? undefined,
    certificate: row.tls_certificate ?? undefined,
    key: row.tls_key ?? undefined,
  };
}

/** What an endpoint has of its own. */
export async function findTls(db: Queryable, endpointId: string): Promise<StoredTls> {
  const result = await db.query<TlsRow & pg.QueryResultRow>({
    name: 'find_tls',
    text: `
      select ${TLS_COLUMNS}
        from endpoint e
       where e.endpoint_id = $1`,
    values: [endpointId],
  });
  return toStoredTls(result.rows[0] as TlsRow);
}

/**
 * Writes what an endpoint has of its own, and what is shown of it, and moves its revision; the caller holds its lock.
 *
 * @param facts  undefined: there is nothing to show
 */
export async function updateTls(
  db: Queryable,
  endpointId: string,
  { ca, certificate, key, facts }: StoredTls & { readonly facts: TlsFacts | undefined },
): Promise<Endpoint> {
  const result = await db.query<EndpointRow>({
    name: 'update_tls',
    text: `
      update endpoint e
         set tls = $2,
             tls_ca = $3,
             tls_certificate = $4,
             tls_key = $5,
             revision = revision + 1,
             updated_at = now()
       where e.endpoint_id = $1
      returning ${ENDPOINT_COLUMNS}`,
    values: [
      endpointId,
      facts === undefined ? null : JSON.stringify(facts),
      ca ?? null,
      certificate ?? null,
      key ?? null,
    ],
  });
  return toEndpoint(result.rows[0] as EndpointRow);
}

/** A client certificate's key, as it is stored. */
export interface StoredKey {
  readonly endpointId: string;
  readonly ciphertext: Buffer;
}

/** Every client certificate's key there is, those of deleted endpoints included, in the order of endpoints. */
export async function listTlsKeys(
  db: Queryable,
  page: { readonly after: string; readonly limit: number },
): Promise<StoredKey[]> {
  const result = await db.query<{ endpoint_id: string; tls_key: Buffer }>({
    name: 'list_tls_keys',
    text: `
      select endpoint_id, tls_key
        from endpoint
       where tls_key is not null
         and endpoint_id > $1
       order by endpoint_id
       limit $2`,
    values: [page.after, page.limit],
  });
  return result.rows.map((row) => ({ endpointId: row.endpoint_id, ciphertext: row.tls_key }));
}

/** Puts another ciphertext of the same key in the place of the one that was read; nothing if that has changed. */
export async function replaceTlsKey(
  db: Queryable,
  { endpointId, ciphertext, replacement }: StoredKey & { readonly replacement: Buffer },
): Promise<void> {
  await db.query({
    name: 'replace_tls_key',
    text: `
      update endpoint
         set tls_key = $3
       where endpoint_id = $1
         and tls_key = $2`,
    values: [endpointId, ciphertext, replacement],
  });
}

/** Names of endpoints whose client certificate has expired or will within so many days, the next to expire first. */
export async function listExpiringTls(
  db: Queryable,
  withinDays: number,
): Promise<{ readonly name: string; readonly expiresAt: Date }[]> {
  const result = await db.query<{ name: string; expires_at: Date }>({
    name: 'list_expiring_tls',
    text: `
      select e.name, c.expires_at
        from endpoint e
       cross join lateral (select (e.tls #>> '{certificate,expires_at}')::timestamptz as expires_at) as c
       where e.deleted_at is null
         and c.expires_at < now() + $1 * interval '1 day'
       order by c.expires_at`,
    values: [withinDays],
  });
  return result.rows.map((row) => ({ name: row.name, expiresAt: row.expires_at }));
}
