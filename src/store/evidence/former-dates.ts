/** SQL: whether a delivery is of a reminder whose renewal date was this day before it was rescheduled. */
export function wasRenewedOn(deliveryId: string, day: string): string {
  return `exists (
         select
           from trail t
          where t.kind = 'reminder'
            and t.delivery_id = ${deliveryId}
            and t.event = 'reschedule'
            and t.detail::jsonb -> 'from' ->> 'renewal_date' = (${day}::date)::text)`;
}
