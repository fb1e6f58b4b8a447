import pg from 'pg';
import { RECEIPT_TABLE_SQL } from '../../src/receiver/store-postgres.ts';

export interface TestDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  drop(): Promise<void>;
}

/** A database of its own with the kit's table and a table for effects, which has no unique key to hide behind. */
export async function createTestDatabase(label: string): Promise<TestDatabase> {
  const serverUrl = process.env['DUEPOST_DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/postgres';
  const name = `duepost_receiver_${label}_${process.pid}_${Math.floor(performance.now())}`;
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query(`create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 20 });
  pool.on('error', () => {});
  await pool.query(RECEIPT_TABLE_SQL);
  await pool.query('create table effect (key text not null, body text not null)');
  return {
    url: url.href,
    pool,
    async drop() {
      await pool.end();
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
