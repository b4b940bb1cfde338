import type { Queryable } from "../connect/queryable.ts";

/** What an event has changed in its booking's content. */
export interface ChangedFields {
  /** The names, in order. Null: a content that is needed is gone, or the event takes no part in the fold. */
  names: string[] | null;
  /** By the names: JSON text of an object with `before` and `after`. Null: it was not asked for, or there are no names. */
  values: string | null;
}

/** SQL for the content after an event of the booking whose key is `$1`, and whether it should have one. */
export const contentAfter = (event: string) => `case
         when ${event}.content_from is null then case when ${event}.kind <> 'delete' then ${event}.payload end
         else coalesce(
           (select source.payload from booking_events as source where source.id = ${event}.content_from limit 1),
           (select booking.payload from bookings as booking
            where booking.booking_key = $1 and booking.content_event_id = ${event}.content_from)
         ) end`;
export const hasContent = (event: string) => `(${event}.content_from is not null or ${event}.kind <> 'delete')`;

/**
 * Finds what events of a booking have changed: the difference between the contents after the event before in the fold, and
 * after the event.
 *
 * @returns by the events' ids
 */
export async function findChangedFields(
  client: Queryable,
  bookingKey: Buffer,
  { ids, withValues }: { ids: string[]; withValues: boolean },
): Promise<Map<string, ChangedFields>> {
  const { rows } = await client.query<{ id: string } & ChangedFields>(
    `select event.id,
       case when event.state_after is not null and content.is_known then coalesce(changed.names, '{}') end as names,
       case when $3 and content.is_known then changed.values::text end as values
     from unnest($2::uuid[]) as wanted (id)
     cross join lateral (select * from booking_events where booking_events.id = wanted.id limit 1) as event
     left join lateral (
       select * from booking_events
       where booking_key = $1 and duplicate_of is null and state_after is not null
         and (sequence, id) < (event.sequence, event.id)
       order by sequence desc, id desc
       limit 1
     ) as before on true
     cross join lateral (
       select ${contentAfter("event")} as after, ${contentAfter("before")} as before
     ) as contents
     cross join lateral (
       select (contents.after is not null or not ${hasContent("event")})
         and (contents.before is not null or before.id is null or not ${hasContent("before")}) as is_known
     ) as content
     cross join lateral (
       select array_agg(key order by key collate "C") as names,
         jsonb_object_agg(key, jsonb_build_object('before', old_value, 'after', value)) as values
       from (select * from jsonb_each(contents.after)) as now (key, value)
       full join (select * from jsonb_each(contents.before)) as earlier (key, old_value) using (key)
       where value is distinct from old_value
     ) as changed`,
    [bookingKey, ids, withValues],
  );
  return new Map(rows.map(({ id, names, values }) => [id, { names, values }]));
}
