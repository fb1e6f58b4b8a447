import { decodeCursor, encodeCursor, type Position } from './cursor.ts';
import { DEFAULT_LIMIT } from './read.ts';

/** A page as it is answered. */
export interface Page {
  readonly data: readonly unknown[];
  readonly next_cursor: string | null;
  readonly has_more: boolean;
}

/** How a list is read and shown. */
export interface List<T> {
  readonly name: string;
  /** What stood in the query. */
  readonly query: Readonly<Record<string, unknown>> & { readonly limit?: number; readonly cursor?: string };
  /** Reads up to `limit` rows after a position; undefined: from the start. */
  readonly read: (after: Position | undefined, limit: number) => Promise<readonly T[]>;
  readonly positionOf: (row: T) => Position;
  readonly show: (row: T) => unknown;
}

/** One page of a list; one row more than asked for is read, to know whether there is more. */
export async function readPage<T>({ name, query, read, positionOf, show }: List<T>): Promise<Page> {
  const { limit = DEFAULT_LIMIT, cursor, ...filter } = query;
  const list = [name, filter];
  const rows = await read(decodeCursor(list, cursor), limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return {
    data: page.map(show),
    next_cursor: hasMore ? encodeCursor(list, positionOf(last)) : null,
    has_more: hasMore,
  };
}
