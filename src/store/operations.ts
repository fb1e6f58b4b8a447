import type { Queryable } from './pool.ts';

/** What was done to an endpoint or a key, by whom. */
export interface Operation {
  readonly subjectId: string;
  readonly event: string;
  readonly actor: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Records an operation; append-only. */
export async function insertOperation(db: Queryable, operation: Operation): Promise<void> {
  await db.query({
    name: 'insert_operation',
    text: `
      insert into operation (subject_id, event, actor, detail)
      values ($1, $2, $3, $4)`,
    values: [operation.subjectId, operation.event, operation.actor, JSON.stringify(operation.detail)],
  });
}

/** Every name that endpoints have had, by their ids. */
export async function listFormerNames(
  db: Queryable,
  endpointIds: readonly string[],
): Promise<Map<string, Set<string>>> {
  const result = await db.query<{ subject_id: string; names: string[] }>({
    name: 'list_former_names',
    text: `
      select o.subject_id, array_agg(distinct n.name) as names
        from operation o
       cross join lateral (
         values (o.detail ->> 'name'), (o.detail -> 'from' ->> 'name'), (o.detail -> 'to' ->> 'name')) as n (name)
       where o.subject_id = any($1)
         and o.event in ('endpoint.created', 'endpoint.changed')
         and n.name is not null
       group by o.subject_id`,
    values: [endpointIds],
  });
  return new Map(result.rows.map((row) => [row.subject_id, new Set(row.names)]));
}
