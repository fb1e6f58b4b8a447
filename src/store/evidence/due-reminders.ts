import type { DueReminder } from '../../domain/audit/completeness.ts';
import type { Queryable } from '../pool.ts';

interface Row {
  readonly reminder_id: string;
  readonly delivery_id: string;
  readonly contract_ref: string;
  readonly renewal_date: string;
  readonly state: string | null;
  readonly cycle: number | null;
  readonly has_ended: boolean | null;
  readonly records: { cycle: number; state: string; in_time: boolean; shadow: boolean }[];
  readonly delivered: number[];
  readonly unknown: number[];
}

/** Among the next reminders by id, those due within a period, with their outcomes; last undefined: the end. */
export async function listRemindersDueAfter(
  db: Queryable,
  page: { readonly after: string; readonly from: Date; readonly to: Date; readonly limit: number },
): Promise<{ reminders: DueReminder[]; last: string | undefined }> {
  const result = await db.query<Row & { last: string }>({
    name: 'list_reminders_due_after',
    text: `
      with page as (
        select reminder_id, delivery_id, contract_ref, renewal_date, due_at
          from reminder
         where reminder_id > $1
         order by reminder_id
         limit $4
      )
      select bounds.last, p.reminder_id, p.delivery_id, p.contract_ref, p.renewal_date::text, d.state, d.cycle,
             d.ended_at is not null as has_ended,
             coalesce((
               select jsonb_agg(jsonb_build_object(
                        'cycle', a.cycle, 'state', a.state, 'in_time', a.in_time, 'shadow', a.shadow) order by a.cycle)
                 from audit_record a
                where a.delivery_id = p.delivery_id
                  and a.kind = 'reminder'), '[]') as records,
             array(
               select t.attempt
                 from attempt t
                where t.delivery_id = p.delivery_id
                  and t.kind = 'reminder'
                  and t.outcome = 'delivered'
                order by t.attempt) as delivered,
             array(
               select t.attempt
                 from attempt t
                where t.delivery_id = p.delivery_id
                  and t.kind = 'reminder'
                  and coalesce(t.outcome, 'unknown') = 'unknown'
                order by t.attempt) as unknown
        from (select max(reminder_id) as last from page) as bounds
        left join page p on p.due_at >= $2 and p.due_at < $3
        left join delivery d on d.delivery_id = p.delivery_id
       where bounds.last is not null
       order by p.due_at, p.reminder_id`,
    values: [page.after, page.from, page.to, page.limit],
  });
  return {
    last: result.rows[0]?.last,
    reminders: result.rows
      .filter((row) => row.reminder_id !== null)
      .map((row) => ({
        reminderId: row.reminder_id,
        deliveryId: row.delivery_id,
        contractRef: row.contract_ref,
        renewalDate: row.renewal_date,
        state: row.state ?? undefined,
        cycle: row.cycle ?? 0,
        hasEnded: row.has_ended === true,
        records: row.records.map((r) => ({
          cycle: r.cycle,
          state: r.state,
          inTime: r.in_time,
          shadow: r.shadow,
        })),
        delivered: row.delivered,
        unknown: row.unknown,
      })),
  };
}
