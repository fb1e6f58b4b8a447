import { type StoredTls, TLS_COLUMNS, type TlsRow, toStoredTls } from './endpoint-tls.ts';
import { ENDPOINT_COLUMNS, type Endpoint, type EndpointRow, toEndpoint } from './endpoints.ts';
import type { Queryable } from './pool.ts';

/** What a worker needs to make a call, at one revision of the endpoint. */
export interface EndpointForCall extends Endpoint {
  readonly secrets: readonly { readonly ciphertext: Buffer; readonly expiresAt: Date | undefined }[];
  readonly storedTls: StoredTls;
}

/** Endpoints with their secrets, newest first, and what they have of their own; deleted ones included. */
export async function listEndpointsForCall(
  db: Queryable,
  endpointIds: readonly string[],
): Promise<EndpointForCall[]> {
  const result = await db.query<EndpointRow & TlsRow & { ciphertexts: Buffer[]; expiries: (Date | null)[] }>({
    name: 'list_endpoints_for_call',
    text: `
      select ${ENDPOINT_COLUMNS}, ${TLS_COLUMNS},
             array_agg(s.ciphertext order by s.secret_number desc) as ciphertexts,
             array_agg(s.expires_at order by s.secret_number desc) as expiries
        from endpoint e
        join endpoint_secret s on s.endpoint_id = e.endpoint_id
       where e.endpoint_id = any($1)
         and (s.expires_at is null or s.expires_at > now())
       group by e.endpoint_id`,
    values: [endpointIds],
  });
  return result.rows.map((row) => ({
    ...toEndpoint(row),
    storedTls: toStoredTls(row),
    secrets: row.ciphertexts.map((ciphertext, i) => ({
      ciphertext,
      expiresAt: row.expiries[i] ?? undefined,
    })),
  }));
}
