import type { Claim, KeyedCall, Store } from './store.ts';

/** The part of a `pg` client that is used; any driver can be dressed up as it. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
}

/** A client of its own for each call, because each call is a transaction. `release(true)` throws the connection away. */
export interface PooledClient extends PostgresClient {
  release(destroy?: boolean): void;
}

export interface PostgresPool<Client extends PooledClient = PooledClient> {
  connect(): Promise<Client>;
}

/** The table of the store: put it into a migration of your own. A row is a call that took effect, and its answer. */
export const RECEIPT_TABLE_SQL = `
create table if not exists duepost_receipt (
  key         text primary key,
  delivery_id text unique,
  body_sha256 text not null,
  status      smallint not null,
  headers     jsonb not null,
  body        text,
  recorded_at timestamptz not null default now()
);
create index if not exists duepost_receipt_recorded_at on duepost_receipt (recorded_at);
`;

const FIND = `
select key, body_sha256, status, headers, body
  from duepost_receipt
 where key = $1
    or delivery_id = $2
 order by key = $1 desc
 limit 1`;

const INSERT = `
insert into duepost_receipt (key, delivery_id, body_sha256, status, headers, body)
values ($1, $2, $3, $4, $5, $6)
    on conflict do nothing
returning key`;

interface ReceiptRow {
  key: string;
  body_sha256: string;
  status: number;
  headers: Record<string, string>;
  body: string | null;
}

/** A client whose connection dies while it is ours says so by an event, and again by its next query; the event is enough for Node to end the process. */
function ignoreError(): void {}

async function findOrLock(
  client: PostgresClient,
  call: KeyedCall,
): Promise<ReceiptRow | 'running' | undefined> {
  await client.query('begin isolation level read committed');
  // Two statements: what the holder of the lock committed is visible only to a snapshot taken after getting it.
  const { rows: locks } = await client.query(
    'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as locked',
    [`duepost_receipt:${call.key}`],
  );
  if (!(locks as { locked: boolean }[])[0]?.locked) return 'running';
  const { rows } = await client.query(FIND, [call.key, call.deliveryId ?? null]);
  return (rows as ReceiptRow[])[0];
}

/**
 * Keeps answers in the receiver's own PostgreSQL (11 or later; the table is `RECEIPT_TABLE_SQL`).
 *
 * The handler gets the client inside an open transaction: what it writes there and the record are one commit, so a
 * crash at any moment leaves both or neither. The lock belongs to that transaction, so there is no lease to wait for.
 * The handler must not end the transaction itself.
 */
export function createPostgresStore<Client extends PooledClient>(pool: PostgresPool<Client>): Store<Client> {
  return {
    async claim(call): Promise<Claim<Client>> {
      const client = await pool.connect();
      client.on?.('error', ignoreError);

      function giveBack(destroy: boolean): void {
        client.removeListener?.('error', ignoreError);
        client.release(destroy);
      }
      async function release(): Promise<void> {
        await client.query('rollback').then(
          () => giveBack(false),
          () => giveBack(true),
        );
      }

      let found: ReceiptRow | 'running' | undefined;
      try {
        found = await findOrLock(client, call);
      } catch (error) {
        giveBack(true);
        throw error;
      }
      if (found === 'running') {
        await release();
        return { state: 'running' };
      }
      if (found !== undefined) {
        await release();
        const { key, body_sha256, status, headers, body } = found;
        return {
          state: 'recorded',
          recorded: { key, bodySha256: body_sha256, answer: { status, headers, body: body ?? undefined } },
        };
      }
      return {
        state: 'claimed',
        client,
        release,
        async record(answer) {
          try {
            const { rows } = await client.query(INSERT, [
              call.key,
              call.deliveryId ?? null,
              call.bodySha256,
              answer.status,
              JSON.stringify(answer.headers ?? {}),
              answer.body ?? null,
            ]);
            await client.query(rows.length === 1 ? 'commit' : 'rollback');
            giveBack(false);
            return rows.length === 1;
          } catch (error) {
            giveBack(true);
            throw error;
          }
        },
      };
    },
  };
}

/** Deletes what was recorded more than so many days ago; run it now and then. Returns how many. */
export async function forgetReceipts(db: PostgresClient, olderThanDays: number): Promise<number> {
  const { rows } = await db.query(
    `delete from duepost_receipt where recorded_at < now() - make_interval(days => $1) returning key`,
    [olderThanDays],
  );
  return rows.length;
}
