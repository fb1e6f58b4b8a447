import type { Queryable } from '../pool.ts';

/** What a database server says about itself. */
export interface ServerFacts {
  /** Such as `15.20`. */
  readonly version: string;
  /** Such as 150020. */
  readonly versionNumber: number;
  /** Whether it refuses writes: a standby, or set to. */
  readonly isReadOnly: boolean;
  /** Connections that are not kept back for administrators. */
  readonly maxConnections: number;
  /** Connections that others hold. */
  readonly connections: number;
}

export async function findServerFacts(db: Queryable): Promise<ServerFacts> {
  const result = await db.query<{
    version: string;
    version_number: number;
    read_only: boolean;
    max_connections: number;
    connections: number;
  }>({
    text: `
      select split_part(current_setting('server_version'), ' ', 1) as version,
             current_setting('server_version_num')::int as version_number,
             current_setting('transaction_read_only')::boolean as read_only,
             current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int as max_connections,
             (select count(*)::int - 1
                from pg_stat_activity
               where backend_type = 'client backend') as connections`,
    values: [],
  });
  const row = result.rows[0];
  if (row === undefined) throw new Error('the database said nothing about itself');
  return {
    version: row.version,
    versionNumber: row.version_number,
    isReadOnly: row.read_only,
    maxConnections: row.max_connections,
    connections: row.connections,
  };
}

/** The database's clock, at the very moment it answers. */
export async function findDatabaseTime(db: Queryable): Promise<Date> {
  const result = await db.query<{ at: Date }>({ text: 'select clock_timestamp() as at', values: [] });
  return result.rows[0]?.at as Date;
}

/**
 * What the product does to its tables, retention and sealing included; the schema itself is only changed by `migrate`.
 *
 * Whoever locks a row needs the right to update it.
 */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  endpoint: ['select', 'insert', 'update'],
  endpoint_secret: ['select', 'insert', 'update'],
  body: ['select', 'insert', 'update', 'delete'],
  reminder: ['select', 'insert', 'update', 'delete'],
  event: ['select', 'insert', 'delete'],
  delivery: ['select', 'insert', 'update', 'delete'],
  attempt: ['select', 'insert', 'update'],
  trail: ['select', 'insert'],
  audit_record: ['select', 'insert'],
  api_key: ['select', 'insert', 'update'],
  operation: ['select', 'insert'],
  notice: ['select', 'insert', 'delete'],
  seal: ['select', 'insert'],
  seal_leaf: ['select', 'insert'],
  unsealed: ['select', 'insert', 'update', 'delete'],
  legal_hold: ['select', 'insert', 'update'],
  retention_month: ['select', 'insert', 'update'],
  watermark: ['select', 'update'],
  migration: ['select'],
};
const NEEDED_FUNCTIONS = ['drop_month(text, text, int)'];

/** Privileges that this user needs and lacks, such as `update on delivery`; what is missing itself is left out. */
export async function listMissingPrivileges(db: Queryable): Promise<string[]> {
  const wanted = Object.entries(NEEDED).flatMap(([table, privileges]) =>
    privileges.map((privilege) => ({ table, privilege })),
  );
  const result = await db.query<{ missing: string }>({
    text: `
      select w.privilege || ' on ' || w.name as missing
        from unnest($1::text[], $2::text[]) as w (name, privilege)
       where to_regclass(w.name) is not null
         and not has_table_privilege(to_regclass(w.name), w.privilege)
       union all
      select 'execute on ' || f.name
        from unnest($3::text[]) as f (name)
       where to_regprocedure(f.name) is not null
         and not has_function_privilege(to_regprocedure(f.name), 'execute')`,
    values: [wanted.map((w) => w.table), wanted.map((w) => w.privilege), NEEDED_FUNCTIONS],
  });
  return result.rows.map((row) => row.missing);
}

/** Whether the partitions of next month are there already. */
export async function hasNextPartitions(db: Queryable): Promise<boolean> {
  const result = await db.query<{ there: boolean }>({
    text: `
      select bool_and(to_regclass(p.name || to_char(now() at time zone 'UTC' + interval '1 month', '_YYYY_MM')) is not null)
               as there
        from unnest(array['attempt_reminder', 'attempt_event', 'trail_reminder', 'trail_event',
                          'audit_record_reminder', 'audit_record_event']) as p (name)`,
    values: [],
  });
  return result.rows[0]?.there ?? false;
}
