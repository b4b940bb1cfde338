import type { BookingState, Outcome } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import { contentAfter, hasContent } from "./changed-fields.ts";

/** A point in a booking's history: what it was after an event. */
export interface BookingPoint {
  eventId: string;
  outcome: Outcome;
  sequence: number;
  receivedAt: Date;
  state: BookingState["state"];
  /** The event before it in the fold. Null: there is none, or the log no longer has it. */
  previousEventId: string | null;
  /** The log and the booking no longer have the content of that point. */
  isContentGone: boolean;
}

/** A field of the booking's content at a point, at the point before, and now. */
export interface FieldAtPoint {
  name: string;
  isThere: boolean;
  wasThere: boolean;
  isThereNow: boolean;
  hasChanged: boolean;
  /** It has another value now than it had then. */
  differsNow: boolean;
  /** JSON text. Null: there is none, or it was not asked for. */
  value: string | null;
  before: string | null;
  now: string | null;
}

/** An event of the booking, or a time of receipt. */
export type PointInTime = { eventId: string } | { at: Date };

/**
 * Finds the last event that counts in the fold, up to an event or a time.
 *
 * @returns undefined: the booking came later, or the log does not have it from then any more
 */
export async function findBookingPoint(
  client: Queryable,
  bookingKey: Buffer,
  point: PointInTime,
): Promise<BookingPoint | undefined> {
  const { rows } = await client.query<BookingPoint>(
    `select event.id as "eventId", event.outcome, event.sequence, event.received_at as "receivedAt",
       event.state_after as state, before.id as "previousEventId",
       (${hasContent("event")} and (${contentAfter("event")}) is null) as "isContentGone"
     from (
       select sequence, id from booking_events where booking_key = $1 and id = $2
       union all
       select $3::bigint, null where $2::uuid is null
     ) as wanted (sequence, id)
     cross join lateral (
       select * from booking_events
       where booking_key = $1 and duplicate_of is null and state_after is not null
         and sequence <= wanted.sequence and (wanted.id is null or (sequence, id) <= (wanted.sequence, wanted.id))
       order by sequence desc, id desc
       limit 1
     ) as event
     left join lateral (
       select id from booking_events
       where booking_key = $1 and duplicate_of is null and state_after is not null
         and (sequence, id) < (event.sequence, event.id)
       order by sequence desc, id desc
       limit 1
     ) as before on true`,
    "eventId" in point ? [bookingKey, point.eventId, null] : [bookingKey, null, point.at.getTime() * 1_000],
  );
  return rows[0];
}

/**
 * Compares the fields of a booking at a point with those at the point before, and with those now, in the order of their
 * names. A deleted booking has those that it had.
 *
 * @param values of which fields values are returned
 */
export async function compareFields(
  client: Queryable,
  bookingKey: Buffer,
  { eventId, previousEventId }: Pick<BookingPoint, "eventId" | "previousEventId">,
  values: "all" | readonly string[],
): Promise<FieldAtPoint[]> {
  const { rows } = await client.query<FieldAtPoint>(
    `with event as (select * from booking_events where id = $2 limit 1),
       before as (select * from booking_events where id = $3 limit 1),
       contents as (
         select (select ${contentAfter("event")} from event) as here, (select ${contentAfter("before")} from before) as before,
           (select payload from bookings where booking_key = $1) as now
       ),
       fields as (
         select key as name, here.value as here, before.value as before, now.value as now,
           $4::text[] is null or key = any($4) as "isShown"
         from (select (jsonb_each(here)).* from contents) as here
         full join (select (jsonb_each(before)).* from contents) as before using (key)
         full join (select (jsonb_each(now)).* from contents) as now using (key)
       )
     select name, here is not null as "isThere", before is not null as "wasThere", now is not null as "isThereNow",
       here is distinct from before as "hasChanged", here is distinct from now as "differsNow",
       case when "isShown" then here::text end as value, case when "isShown" then before::text end as before,
       case when "isShown" then now::text end as now
     from fields
     order by name collate "C"`,
    [bookingKey, eventId, previousEventId, values === "all" ? null : values],
  );
  return rows;
}
