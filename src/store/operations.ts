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
