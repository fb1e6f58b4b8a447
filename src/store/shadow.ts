import type { Queryable } from './pool.ts';
import { REMINDER_COLUMNS, type Reminder, type ReminderRow, toReminder } from './reminders.ts';

/** A reminder that shadow mode handled, or is to handle. */
export interface ShadowedReminder extends Reminder {
  /** When its first attempt was or is due. */
  readonly scheduledAt: Date;
  /** How often it would have been sent with success. */
  readonly effects: number;
  readonly firstAttemptAt: Date | undefined;
}

/** An endpoint as the report tells it. */
export interface ShadowEndpoint {
  readonly endpointId: string;
  readonly name: string;
}

/** The endpoints in shadow mode, or all; and the instant by the database's clock. */
export async function listShadowEndpoints(
  db: Queryable,
  { all }: { readonly all: boolean },
): Promise<{ endpoints: ShadowEndpoint[]; now: Date }> {
  const result = await db.query<{ now: Date; endpoint_id: string | null; name: string }>({
    name: 'list_shadow_endpoints',
    text: `
      select now() as now, e.endpoint_id, e.name
        from (select now()) as clock
        left join endpoint e
          on e.deleted_at is null
         and ($1 or e.mode = 'shadow')
       order by e.name`,
    values: [all],
  });
  return {
    now: result.rows[0]?.now as Date,
    endpoints: result.rows.flatMap((row) =>
      row.endpoint_id === null ? [] : [{ endpointId: row.endpoint_id, name: row.name }],
    ),
  };
}

/**
 * The next page of an endpoint's reminders that are due in a period and were attempted in shadow mode; and, where the
 * endpoint is in that mode, those that nobody has attempted.
 */
export async function listShadowed(
  db: Queryable,
  page: {
    readonly endpointId: string;
    /** Whether it is treated as one in shadow mode whatever its own mode says. */
    readonly all: boolean;
    readonly from: Date;
    readonly to: Date;
    /** A delivery's id. */
    readonly after: string;
    readonly limit: number;
  },
): Promise<ShadowedReminder[]> {
  const result = await db.query<
    ReminderRow & { scheduled_at: Date; effects: number; first_attempt_at: Date | null }
  >({
    name: 'list_shadowed',
    text: `
      select ${REMINDER_COLUMNS}, d.scheduled_at, s.effects, s.first_attempt_at
        from delivery d
        join reminder r on r.reminder_id = d.reminder_id
        join endpoint e on e.endpoint_id = d.endpoint_id
       cross join lateral (
         select count(*)::int as attempts,
                (count(*) filter (where a.outcome = 'delivered'))::int as effects,
                min(coalesce(a.started_at, a.claimed_at)) as first_attempt_at
           from attempt a
          where a.delivery_id = d.delivery_id
            and a.kind = 'reminder'
            and a.shadow
       ) as s
       where d.endpoint_id = $1
         and d.delivery_id > $2
         and d.scheduled_at >= $3
         and d.scheduled_at < $4
         and (s.attempts > 0 or (d.attempt = 0 and ($5 or e.mode = 'shadow')))
       order by d.delivery_id
       limit $6`,
    values: [page.endpointId, page.after, page.from, page.to, page.all, page.limit],
  });
  return result.rows.map((row) => ({
    ...toReminder(row),
    scheduledAt: row.scheduled_at,
    effects: row.effects,
    firstAttemptAt: row.first_attempt_at ?? undefined,
  }));
}

/** When the first attempt in shadow mode of an endpoint was due; undefined: there was none. */
export async function findShadowStart(db: Queryable, endpointId: string): Promise<Date | undefined> {
  const result = await db.query<{ started_at: Date | null }>({
    name: 'find_shadow_start',
    text: `
      select min(d.scheduled_at) as started_at
        from delivery d
        join attempt a
          on a.delivery_id = d.delivery_id
         and a.kind = 'reminder'
         and a.shadow
       where d.endpoint_id = $1`,
    values: [endpointId],
  });
  return result.rows[0]?.started_at ?? undefined;
}
