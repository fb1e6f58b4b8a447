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
