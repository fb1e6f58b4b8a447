import type { Queryable } from './pool.ts';

/**
 * Adds a secret that signs from now on; older ones go on signing until `overlapMs` from now.
 *
 * Moves the endpoint's revision, so that workers see it before their next call.
 */
export async function insertSecret(
  db: Queryable,
  secret: { readonly endpointId: string; readonly ciphertext: Buffer; readonly overlapMs: number },
): Promise<void> {
  await db.query({
    name: 'insert_secret',
    text: `
      with older as (
        update endpoint_secret
           set expires_at = least(expires_at, now() + $3 * interval '1 millisecond')
         where endpoint_id = $1
      ), moved as (
        update endpoint
           set revision = revision + 1,
               updated_at = now()
         where endpoint_id = $1
      )
      insert into endpoint_secret (endpoint_id, secret_number, ciphertext)
      select $1, coalesce(max(secret_number), 0) + 1, $2
        from endpoint_secret
       where endpoint_id = $1`,
    values: [secret.endpointId, secret.ciphertext, secret.overlapMs],
  });
}

/** One secret of an endpoint, as it is stored. */
export interface StoredSecret {
  readonly endpointId: string;
  readonly secretNumber: number;
  readonly ciphertext: Buffer;
}

/** Every secret there is, expired ones and those of deleted endpoints included, in the order of endpoints and numbers. */
export async function listSecrets(
  db: Queryable,
  page: { readonly after: Pick<StoredSecret, 'endpointId' | 'secretNumber'>; readonly limit: number },
): Promise<StoredSecret[]> {
  const result = await db.query<{ endpoint_id: string; secret_number: number; ciphertext: Buffer }>({
    name: 'list_secrets',
    text: `
      select endpoint_id, secret_number, ciphertext
        from endpoint_secret
       where (endpoint_id, secret_number) > ($1, $2)
       order by endpoint_id, secret_number
       limit $3`,
    values: [page.after.endpointId, page.after.secretNumber, page.limit],
  });
  return result.rows.map((row) => ({
    endpointId: row.endpoint_id,
    secretNumber: row.secret_number,
    ciphertext: row.ciphertext,
  }));
}

/** Puts another ciphertext of the same secret in the place of the one that was read; nothing if that has changed. */
export async function replaceCiphertext(
  db: Queryable,
  secret: StoredSecret & { readonly replacement: Buffer },
): Promise<void> {
  await db.query({
    name: 'replace_ciphertext',
    text: `
      update endpoint_secret
         set ciphertext = $4
       where endpoint_id = $1
         and secret_number = $2
         and ciphertext = $3`,
    values: [secret.endpointId, secret.secretNumber, secret.ciphertext, secret.replacement],
  });
}
