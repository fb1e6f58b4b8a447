import type { Queryable } from './pool.ts';

export const SCOPES = ['publish', 'read', 'operate', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** An API key as it is known after its creation: without the key. */
export interface ApiKey {
  readonly keyId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  readonly revokedAt: Date | undefined;
  readonly lastUsedAt: Date | undefined;
}

interface Row {
  readonly key_id: string;
  readonly name: string;
  readonly scopes: Scope[];
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
}

function toKey(row: Row): ApiKey {
  return {
    keyId: row.key_id,
    name: row.name,
    scopes: row.scopes,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  };
}

/** Inserts a key; undefined: one of that name is in force. */
export async function insertKey(
  db: Queryable,
  key: {
    readonly keyId: string;
    readonly name: string;
    readonly sha256: Buffer;
    readonly scopes: readonly Scope[];
    readonly expiresAt: Date | undefined;
  },
): Promise<ApiKey | undefined> {
  const result = await db.query<Row>({
    name: 'insert_key',
    text: `
      insert into api_key (key_id, name, key_sha256, scopes, expires_at)
      values ($1, $2, $3, $4, $5)
      on conflict (name) where revoked_at is null do nothing
      returning key_id, name, scopes, created_at, expires_at, revoked_at, last_used_at`,
    values: [key.keyId, key.name, key.sha256, key.scopes, key.expiresAt ?? null],
  });
  return result.rows[0] && toKey(result.rows[0]);
}

/**
 * Marks the key with this hash as used, and gives it; undefined: there is none in force.
 *
 * Written at most once a minute, so a key in constant use costs a look-up and next to no writes.
 */
export async function markKeyUsed(db: Queryable, sha256: Buffer): Promise<ApiKey | undefined> {
  const result = await db.query<Row>({
    name: 'mark_key_used',
    text: `
      with found as (
        select key_id, name, scopes, created_at, expires_at, revoked_at, last_used_at
          from api_key
         where key_sha256 = $1
           and revoked_at is null
           and (expires_at is null or expires_at > now())
      ), used as (
        update api_key k
           set last_used_at = now()
          from found f
         where k.key_id = f.key_id
           and (f.last_used_at is null or f.last_used_at < now() - interval '1 minute')
      )
      select key_id, name, scopes, created_at, expires_at, revoked_at, last_used_at
        from found`,
    values: [sha256],
  });
  return result.rows[0] && toKey(result.rows[0]);
}

export async function listKeys(db: Queryable): Promise<ApiKey[]> {
  const result = await db.query<Row>({
    name: 'list_keys',
    text: `
      select key_id, name, scopes, created_at, expires_at, revoked_at, last_used_at
        from api_key
       order by key_id`,
    values: [],
  });
  return result.rows.map(toKey);
}

/** Revokes a key by id or name; undefined: there is none in force. */
export async function markKeyRevoked(db: Queryable, reference: string): Promise<ApiKey | undefined> {
  const result = await db.query<Row>({
    name: 'mark_key_revoked',
    text: `
      update api_key
         set revoked_at = now()
       where key_id = (
         select key_id
           from api_key
          where (key_id = $1 or name = $1)
            and revoked_at is null
          -- What is the id of one may be the name of another.
          order by key_id = $1 desc
          limit 1)
         and revoked_at is null
      returning key_id, name, scopes, created_at, expires_at, revoked_at, last_used_at`,
    values: [reference],
  });
  return result.rows[0] && toKey(result.rows[0]);
}
