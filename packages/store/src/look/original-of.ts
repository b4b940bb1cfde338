/**
 * SQL for the event that counts. The event that a duplicate was found to repeat may turn out to be a duplicate itself
 * when one that was received before it arrives late. Each step is earlier in the booking's log, so there is an end.
 *
 * @param column the column `duplicate_of` of the duplicate
 */
export function originalOf(column: string): string {
  return `case when ${column} is not null then (
         with recursive original (id, step) as (
           select ${column}, 0
           union all
           select repeated.duplicate_of, step + 1
           from original cross join lateral (
             -- The limit keeps the planner from joining all of the log. So only the partition of the id is read.
             select duplicate_of from booking_events where id = original.id limit 1
           ) as repeated
           where repeated.duplicate_of is not null
         )
         select id from original order by step desc limit 1
       ) end`;
}
