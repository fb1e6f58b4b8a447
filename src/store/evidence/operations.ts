import type { OperationRow } from '../../domain/audit/facts.ts';
import type { Queryable } from '../pool.ts';
import { FACT_TYPES } from './fact-types.ts';

/** Operations by id. */
export async function findOperations(
  db: Queryable,
  operationIds: readonly string[],
): Promise<Map<string, OperationRow>> {
  const result = await db.query({
    name: 'facts_operation',
    text: `
      select operation_id, at, subject_id, event, actor, detail
        from operation
       where operation_id = any($1::bigint[])`,
    values: [operationIds],
    types: FACT_TYPES,
  });
  return new Map((result.rows as OperationRow[]).map((row) => [row.operation_id, row]));
}

const PAGE = 1_000;

/** All operations on subjects within a period, oldest first, read in pages; `to` undefined: until now. */
export async function* readOperationsOf(db: Queryable, of: OperationsAsked): AsyncGenerator<OperationRow> {
  for (let after = '0'; ; ) {
    const page = await listOperationsOf(db, { ...of, after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.operation_id;
  }
}

interface OperationsAsked {
  readonly subjectIds: readonly string[];
  readonly from: string;
  readonly to: string | undefined;
}

async function listOperationsOf(
  db: Queryable,
  of: OperationsAsked & { readonly after: string; readonly limit: number },
): Promise<OperationRow[]> {
  const result = await db.query({
    name: 'list_operations_of',
    text: `
      select operation_id, at, subject_id, event, actor, detail
        from operation
       where subject_id = any($1)
         and at >= $2::timestamptz
         and ($3::timestamptz is null or at <= $3::timestamptz)
         and operation_id > $4::bigint
       order by operation_id
       limit $5`,
    values: [of.subjectIds, of.from, of.to ?? null, of.after, of.limit],
    types: FACT_TYPES,
  });
  return result.rows as OperationRow[];
}

/** The last operation before an instant that set how each of the endpoints is: its creation, or a change. */
export async function listLastSettingsBefore(
  db: Queryable,
  of: { readonly endpointIds: readonly string[]; readonly before: string },
): Promise<OperationRow[]> {
  const result = await db.query({
    name: 'list_last_settings_before',
    text: `
      select distinct on (subject_id) operation_id, at, subject_id, event, actor, detail
        from operation
       where subject_id = any($1)
         and at < $2::timestamptz
         and event in ('endpoint.created', 'endpoint.changed')
       order by subject_id, operation_id desc`,
    values: [of.endpointIds, of.before],
    types: FACT_TYPES,
  });
  return result.rows as OperationRow[];
}

/** Operations, the newest first; what is undefined does not matter. */
export async function listOperations(
  db: Queryable,
  filter: { readonly subjectId: string | undefined; readonly from: Date | undefined; readonly limit: number },
): Promise<OperationRow[]> {
  const result = await db.query({
    name: 'list_operations',
    text: `
      select operation_id, at, subject_id, event, actor, detail
        from operation
       where ($1::text is null or subject_id = $1)
         and ($2::timestamptz is null or at >= $2)
       order by operation_id desc
       limit $3`,
    values: [filter.subjectId ?? null, filter.from ?? null, filter.limit],
    types: FACT_TYPES,
  });
  return result.rows as OperationRow[];
}

/** The next operations by number, for a walk over all. */
export async function listOperationsAfter(
  db: Queryable,
  page: { readonly after: string; readonly limit: number },
): Promise<OperationRow[]> {
  const result = await db.query({
    name: 'list_operations_after',
    text: `
      select operation_id, at, subject_id, event, actor, detail
        from operation
       where operation_id > $1::bigint
       order by operation_id
       limit $2`,
    values: [page.after, page.limit],
    types: FACT_TYPES,
  });
  return result.rows as OperationRow[];
}
