import type { Queryable } from '../pool.ts';
import { wasRenewedOn } from './former-dates.ts';

/** Which deliveries evidence is asked about. */
export interface Question {
  readonly contractRef?: string | undefined;
  /** A day, `2027-03-31`: of the renewal, now or before it was rescheduled, or any from when it was due until it ended. */
  readonly date?: string | undefined;
  readonly deliveryId?: string | undefined;
}

/** The deliveries that a question is about, oldest first; by the days of the reminder's own time zone, or UTC. */
export async function listDeliveriesAsked(
  db: Queryable,
  question: Question & { readonly limit: number },
): Promise<string[]> {
  const result = await db.query<{ delivery_id: string }>({
    name: 'list_deliveries_asked',
    text: `
      with asked as (
        select r.delivery_id, r.renewal_date, r.time_zone
          from reminder r
         where r.contract_ref = $1
         union all
        select a ->> 'delivery_id', null, 'UTC'
          from event e, jsonb_array_elements(e.answer) as a
         where e.contract_ref = $1
           and a ? 'delivery_id'
         union all
        select d.delivery_id, r.renewal_date, coalesce(r.time_zone, 'UTC')
          from delivery d
          left join reminder r on r.reminder_id = d.reminder_id
         where d.delivery_id = $3
           and $1::text is null
      )
      select d.delivery_id
        from asked a
        join delivery d on d.delivery_id = a.delivery_id
       where ($3::text is null or d.delivery_id = $3)
         and ($2::date is null
              or a.renewal_date = $2::date
              or ${wasRenewedOn('d.delivery_id', '$2')}
              or $2::date between (d.scheduled_at at time zone a.time_zone)::date
                              and (coalesce(d.ended_at, now()) at time zone a.time_zone)::date)
       order by d.delivery_id
       limit $4`,
    values: [
      question.contractRef ?? null,
      question.date ?? null,
      question.deliveryId ?? null,
      question.limit,
    ],
  });
  return result.rows.map((row) => row.delivery_id);
}
