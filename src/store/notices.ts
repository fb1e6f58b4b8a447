import type { Queryable } from './pool.ts';

/** A notice for other services that waits for the broker's confirm; identifiers only. */
export interface Notice {
  readonly noticeId: string;
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export async function insertNotice(
  db: Queryable,
  notice: { readonly name: string; readonly body: Readonly<Record<string, unknown>> },
): Promise<void> {
  await db.query({
    name: 'insert_notice',
    text: 'insert into notice (name, body) values ($1, $2)',
    values: [notice.name, JSON.stringify(notice.body)],
  });
}

/** The oldest notices after one; `after` undefined: from the first. Callers take turns: it locks nothing. */
export async function listNotices(
  db: Queryable,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<Notice[]> {
  const result = await db.query<{ notice_id: string; name: string; body: Record<string, unknown> }>({
    name: 'list_notices',
    text: `
      select notice_id, name, body
        from notice
       where notice_id > $1
       order by notice_id
       limit $2`,
    values: [page.after ?? '0', page.limit],
  });
  return result.rows.map((row) => ({ noticeId: row.notice_id, name: row.name, body: row.body }));
}

/** Removes notices that the broker has confirmed. */
export async function deleteNotices(db: Queryable, noticeIds: readonly string[]): Promise<void> {
  await db.query({
    name: 'delete_notices',
    text: 'delete from notice where notice_id = any($1::bigint[])',
    values: [noticeIds],
  });
}
