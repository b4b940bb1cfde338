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
           from original join booking_events as repeated on repeated.id = original.id
           where repeated.duplicate_of is not null
         )
         select id from original order by step desc limit 1
       ) end`;
}
