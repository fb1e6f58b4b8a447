import type { Queryable } from './pool.ts';

/** Keeps, by delivery id, the trace that a delivery belongs to: W3C traceparents. */
export async function keepTraceParents(
  db: Queryable,
  traceParents: ReadonlyMap<string, string>,
): Promise<void> {
  await db.query({
    name: 'keep_trace_parents',
    text: `
      update delivery d
         set trace_parent = t.trace_parent
        from unnest($1::text[], $2::text[]) as t (delivery_id, trace_parent)
       where d.delivery_id = t.delivery_id`,
    values: [[...traceParents.keys()], [...traceParents.values()]],
  });
}
