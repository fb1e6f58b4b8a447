import { chooseConditions } from './conditions.ts';
import type { Position } from './due.ts';
import type { Queryable } from './pool.ts';

/** A reminder with the state of its delivery. */
export interface Reminder {
  readonly reminderId: string;
  readonly deliveryId: string;
  readonly idempotencyKey: string;
  readonly contentSha256: Buffer;
  readonly endpointId: string;
  readonly contractRef: string;
  readonly type: string;
  readonly renewalDate: string;
  readonly noticePeriod: string;
  readonly jurisdiction: string;
  readonly timeZoneGiven: string | undefined;
  readonly timeZone: string;
  readonly deadlinePeriod: string | undefined;
  readonly deadlineGivenAt: Date | undefined;
  readonly dueAt: Date;
  readonly deadlineAt: Date;
  readonly lateStart: boolean;
  readonly dueProof: unknown;
  readonly revision: number;
  readonly state: string;
  readonly attempt: number;
  readonly cycle: number;
  readonly createdAt: Date;
}

export interface ReminderRow {
  readonly reminder_id: string;
  readonly delivery_id: string;
  readonly idempotency_key: string;
  readonly content_sha256: Buffer;
  readonly endpoint_id: string;
  readonly contract_ref: string;
  readonly type: string;
  readonly renewal_date: string;
  readonly notice_period: string;
  readonly jurisdiction: string;
  readonly time_zone_given: string | null;
  readonly time_zone: string;
  readonly deadline_period: string | null;
  readonly deadline_given_at: Date | null;
  readonly due_at: Date;
  readonly deadline_at: Date;
  readonly late_start: boolean;
  readonly due_proof: unknown;
  readonly revision: number;
  readonly state: string;
  readonly attempt: number;
  readonly cycle: number;
  readonly created_at: Date;
}

export const REMINDER_COLUMNS = `r.reminder_id, r.delivery_id, r.idempotency_key, r.content_sha256, r.endpoint_id,
             r.contract_ref, r.type, r.renewal_date::text, r.notice_period, r.jurisdiction, r.time_zone_given,
             r.time_zone, r.deadline_period, r.deadline_given_at, r.due_at, r.deadline_at, r.late_start, r.due_proof,
             r.revision, d.state, d.attempt, d.cycle, r.created_at`;

export function toReminder(row: ReminderRow): Reminder {
  return {
    reminderId: row.reminder_id,
    deliveryId: row.delivery_id,
    idempotencyKey: row.idempotency_key,
    contentSha256: row.content_sha256,
    endpointId: row.endpoint_id,
    contractRef: row.contract_ref,
    type: row.type,
    renewalDate: row.renewal_date,
    noticePeriod: row.notice_period,
    jurisdiction: row.jurisdiction,
    timeZoneGiven: row.time_zone_given ?? undefined,
    timeZone: row.time_zone,
    deadlinePeriod: row.deadline_period ?? undefined,
    deadlineGivenAt: row.deadline_given_at ?? undefined,
    dueAt: row.due_at,
    deadlineAt: row.deadline_at,
    lateStart: row.late_start,
    dueProof: row.due_proof,
    revision: row.revision,
    state: row.state,
    attempt: row.attempt,
    cycle: row.cycle,
    createdAt: row.created_at,
  };
}

/** Reminders by the producer's idempotency keys. */
export async function findRemindersByKey(
  db: Queryable,
  keys: readonly string[],
): Promise<Map<string, Reminder>> {
  const result = await db.query<ReminderRow>({
    name: 'find_reminders_by_key',
    text: `
      select ${REMINDER_COLUMNS}
        from reminder r
        join delivery d on d.delivery_id = r.delivery_id
       where r.idempotency_key = any($1)`,
    values: [keys],
  });
  return new Map(result.rows.map((row) => [row.idempotency_key, toReminder(row)]));
}

/** One reminder by id. */
export async function findReminder(db: Queryable, reminderId: string): Promise<Reminder | undefined> {
  const result = await db.query<ReminderRow>({
    name: 'find_reminder',
    text: `
      select ${REMINDER_COLUMNS}
        from reminder r
        join delivery d on d.delivery_id = r.delivery_id
       where r.reminder_id = $1`,
    values: [reminderId],
  });
  return result.rows[0] && toReminder(result.rows[0]);
}

/** A contract's reminders, or all, newest first, from before `before` (an id; undefined: from the newest). */
export async function listReminders(
  db: Queryable,
  page: { readonly contractRef?: string; readonly before?: string; readonly limit: number },
): Promise<Reminder[]> {
  const asked = chooseConditions(
    [
      { name: 'contract', value: page.contractRef, text: (p) => `r.contract_ref = ${p}` },
      { name: 'before', value: page.before, text: (p) => `r.reminder_id < ${p}` },
    ],
    [page.limit],
  );
  const result = await db.query<ReminderRow>({
    name: `list_reminders${asked.suffix}`,
    text: `
      select ${REMINDER_COLUMNS}
        from reminder r
        join delivery d on d.delivery_id = r.delivery_id
       where ${asked.where}
       order by r.reminder_id desc
       limit $1`,
    values: asked.values,
  });
  return result.rows.map(toReminder);
}

/** A contract's reminders that have not ended. */
export async function listOpenReminders(db: Queryable, contractRef: string): Promise<Reminder[]> {
  const result = await db.query<ReminderRow>({
    name: 'list_open_reminders',
    text: `
      select ${REMINDER_COLUMNS}
        from reminder r
        join delivery d on d.delivery_id = r.delivery_id
       where r.contract_ref = $1
         and d.ended_at is null
       order by r.reminder_id
       limit 10`,
    values: [contractRef],
  });
  return result.rows.map(toReminder);
}

/** How many reminders have neither ended nor been attempted, and the instant by the database's clock. */
export async function countUnsentReminders(db: Queryable): Promise<{ count: number; now: Date }> {
  const result = await db.query<{ count: string; now: Date }>({
    name: 'count_unsent_reminders',
    text: `
      select count(*) as count, now() as now
        from delivery
       where due_at is not null
         and reminder_id is not null
         and attempt = 0`,
    values: [],
  });
  return { count: Number(result.rows[0]?.count), now: result.rows[0]?.now as Date };
}

/** The next page, in due order, of reminders that have neither ended nor been attempted, nor changed since an instant. */
export async function listUnsentReminders(
  db: Queryable,
  page: { readonly after: Position | undefined; readonly unchangedSince: Date; readonly limit: number },
): Promise<{ reminders: Reminder[]; last: Position | undefined }> {
  const result = await db.query<ReminderRow & { due_text: string }>({
    name: 'list_unsent_reminders',
    text: `
      select ${REMINDER_COLUMNS}, d.due_at::text as due_text
        from delivery d
        join reminder r on r.reminder_id = d.reminder_id
       where d.due_at is not null
         and (d.due_at, d.delivery_id) > (coalesce($1::timestamptz, '-infinity'), $2)
         and d.attempt = 0
         and r.updated_at <= $3
       order by d.due_at, d.delivery_id
       limit $4`,
    values: [page.after?.dueAt ?? null, page.after?.deliveryId ?? '', page.unchangedSince, page.limit],
  });
  const last = result.rows.at(-1);
  return {
    reminders: result.rows.map(toReminder),
    last: last && { dueAt: last.due_text, deliveryId: last.delivery_id },
  };
}
