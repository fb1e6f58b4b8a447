import type { Pool } from './pool.ts';

/**
 * Runs `work` while this process alone holds a lock of the given name; skips it when another holds it.
 *
 * The lock belongs to a session, not to a transaction: none is open while `work` talks to the network. It ends with its
 * connection, so a process that dies leaves nothing behind; that of a host that is gone ends within half a minute.
 *
 * @returns what `work` returned; undefined: somebody else is at it
 */
export async function withLock<T>(pool: Pool, name: string, work: () => Promise<T>): Promise<T | undefined> {
  const client = await pool.connect();
  let doubt: Error | undefined;
  const onError = (error: Error): void => {
    doubt = error;
  };
  client.on('error', onError);
  try {
    const taken = await client
      .query<{ locked: boolean }>('select pg_try_advisory_lock(hashtext($1)) as locked', [name])
      .catch((error: Error) => {
        // It may hold the lock all the same: handed back to the pool, it would hold it for as long as it is used.
        doubt = error;
        throw error;
      });
    if (taken.rows[0]?.locked !== true) return undefined;
    try {
      return await work();
    } finally {
      await client.query('select pg_advisory_unlock(hashtext($1))', [name]).catch((error: Error) => {
        doubt = error;
      });
    }
  } finally {
    client.removeListener('error', onError);
    client.release(doubt);
  }
}
