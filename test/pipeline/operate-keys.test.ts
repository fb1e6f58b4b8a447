import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKey, hashKey, revokeKey } from '../../src/pipeline/operate/keys.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { insertKey, listKeys, markKeyUsed } from '../../src/store/keys.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';

const BY = { actor: 'test' };
let database: TestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
});

afterAll(() => database.close());

function create(name: string) {
  return createKey(database.pool, { name, scopes: ['read'] }, BY);
}

test('a name means one key that is in force, and is free again when that is revoked', async () => {
  const first = await create('billing');
  await expect(create('billing')).rejects.toMatchObject({
    code: 'name_taken',
    faults: [{ path: '/name' }],
  });
  expect((await revokeKey(database.pool, 'billing', BY)).keyId).toBe(first.apiKey.keyId);
  const second = await create('billing');
  expect(await markKeyUsed(database.pool, hashKey(first.key))).toBeUndefined();
  expect(await markKeyUsed(database.pool, hashKey(second.key))).toMatchObject({ name: 'billing' });
});

test('of many at once with one name one is made', async () => {
  const made = await Promise.allSettled(Array.from({ length: 8 }, () => create('crowded')));
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('a key that is called like the id of another is not revoked in its place', async () => {
  const meant = await create('meant');
  const namesake = await create(meant.apiKey.keyId);
  expect((await revokeKey(database.pool, meant.apiKey.keyId, BY)).keyId).toBe(meant.apiKey.keyId);
  expect(await markKeyUsed(database.pool, hashKey(namesake.key))).toBeDefined();
});

test('the use of a key is written once, not at every use', async () => {
  const { key, apiKey } = await create('busy');
  const written = async () =>
    (await database.pool.query('select xmin, last_used_at from api_key where key_id = $1', [apiKey.keyId]))
      .rows[0];
  await markKeyUsed(database.pool, hashKey(key));
  const first = await written();
  expect(first.last_used_at).toBeInstanceOf(Date);
  await markKeyUsed(database.pool, hashKey(key));
  expect(await written()).toEqual(first);
});

test('keys that shared a name before are told apart by the migration, the oldest under its own', async () => {
  await database.pool.query('drop index api_key_name');
  const ids = ['1', '2', '3'].map((n) => `key_0000000000000000000000000${n}`);
  for (const keyId of ids) {
    await database.pool.query(
      `insert into api_key (key_id, name, key_sha256, scopes) values ($1, 'shared', $2, '{read}')`,
      [keyId, Buffer.from(keyId)],
    );
  }
  await database.pool.query(await readFile(join(packageRoot, 'migrations/0014_key_names.sql'), 'utf8'));
  const names = (await listKeys(database.pool)).filter((k) => ids.includes(k.keyId)).map((k) => k.name);
  expect(names).toEqual(['shared', `shared ${ids[1]}`, `shared ${ids[2]}`]);
  const again = { keyId: 'key_00000000000000000000000009', name: 'shared', expiresAt: undefined };
  expect(
    await insertKey(database.pool, { ...again, sha256: Buffer.from('9'), scopes: ['read'] }),
  ).toBeUndefined();
});
