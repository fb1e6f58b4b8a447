import type pg from 'pg';
import { Refusal } from '../domain/refusal.ts';
import type { Queryable } from './pool.ts';

interface ListQuery {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
  /** What the reader can name so that an index serves. */
  readonly narrowing: string;
}

const STATEMENT_TIMEOUT = '57014';

/**
 * The rows of a list whose conditions are its reader's choice: not every combination has an index, and one without may
 * walk a whole table.
 *
 * @throws Refusal `too_broad` when it took longer than a statement may: asking again would not help
 */
export async function queryList<R extends pg.QueryResultRow>(
  db: Queryable,
  { narrowing, ...query }: ListQuery,
): Promise<R[]> {
  try {
    return (await db.query<R>(query)).rows;
  } catch (error) {
    if ((error as { code?: unknown }).code !== STATEMENT_TIMEOUT) throw error;
    throw new Refusal(
      'too_broad',
      `finding these took longer than a statement may (database.statementTimeoutMs): narrow it by ${narrowing}`,
    );
  }
}
