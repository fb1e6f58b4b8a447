/** SQL: what a row of `delivery` was made from. Attempts, trail and audit records are partitioned by it. */
export const kindOf = (delivery: string): string =>
  `case when ${delivery}.reminder_id is null then 'event' else 'reminder' end`;
