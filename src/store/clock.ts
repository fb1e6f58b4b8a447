/**
 * The instant of a trail entry, as a common table expression `clock`, with one column `at`.
 *
 * now() is from before the statement waited for its locks, and so from before the entries that were written meanwhile;
 * this is read once all rows of `locked` are, so that a trail's instants follow its order.
 *
 * @param locked  the common table expression that locks the deliveries
 */
export function clockAfter(locked: string): string {
  return `clock as materialized (
  select max(clock_timestamp()) as at
    from ${locked}
)`;
}
