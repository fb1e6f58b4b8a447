import { createHash, randomBytes } from 'node:crypto';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import { type ApiKey, insertKey, markKeyRevoked, type Scope } from '../../store/keys.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool } from '../../store/pool.ts';
import { newId } from '../new-id.ts';
import type { Operator } from './operator.ts';

const KEY_PREFIX = 'dpk_';
const KEY_BYTES = 32;

/** What of a key is stored: its hash. The key is random, so there is nothing that a slow hash would protect. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** Makes an API key; it is shown once. Throws a Refusal where one of that name is in force. */
export async function createKey(
  pool: Pool,
  request: { readonly name: string; readonly scopes: readonly Scope[]; readonly expiresAt?: Date },
  by: Operator,
): Promise<{ apiKey: ApiKey; key: string }> {
  const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url');
  const apiKey = await inTransaction(pool, async (db) => {
    const inserted = await insertKey(db, {
      keyId: newId('key'),
      name: request.name,
      sha256: hashKey(key),
      scopes: request.scopes,
      expiresAt: request.expiresAt,
    });
    if (inserted === undefined) {
      throw refuseField(
        '/name',
        `a key named ${request.name} has not been revoked: choose another name, or revoke that one first`,
        'name_taken',
      );
    }
    await insertOperation(db, {
      subjectId: inserted.keyId,
      event: 'key.created',
      actor: by.actor,
      detail: { name: request.name, scopes: request.scopes },
    });
    return inserted;
  });
  return { apiKey, key };
}

/** Revokes a key by id or name, at once. Throws a Refusal where none is in force. */
export function revokeKey(pool: Pool, reference: string, by: Operator): Promise<ApiKey> {
  return inTransaction(pool, async (db) => {
    const revoked = await markKeyRevoked(db, reference);
    if (revoked === undefined) throw new Refusal('not_found', `no key ${reference} is in force`);
    await insertOperation(db, {
      subjectId: revoked.keyId,
      event: 'key.revoked',
      actor: by.actor,
      detail: by.reason === undefined ? {} : { reason: by.reason },
    });
    return revoked;
  });
}
