import type { Queryable } from "@booking-events/store";
import { type BookingChange, type ChangeRow, toChange } from "../read-changes.ts";
import type { FeedTables } from "../tables.ts";

/**
 * Reads a booking whose changes have all left the feed, in the form of a change.
 *
 * @param asId what its id is to be
 * @returns null: there is no such booking, or nobody has ever heard of it
 */
export async function readBooking(
  client: Queryable,
  tables: FeedTables,
  { bookingId, asId }: { bookingId: string; asId: number },
): Promise<BookingChange | null> {
  const { rows } = await client.query<ChangeRow>(
    `select $2::float8 as id, booking_id as "bookingId", partner, reference_kind as "referenceKind",
       case when erased_at is null then reference end as reference, revision,
       case
         when erased_at is not null then 'erased'
         when state = 'deleted' then 'deleted'
         when revision = 1 then 'created'
         else 'updated'
       end as change,
       coalesce(feed_event_id, event_id) as "eventId", sequence::float8 as sequence, null as "previousEventId",
       updated_at as "changedAt", case when state = 'active' then payload::text end as payload,
       case when erased_at is not null then 'erased' when state = 'deleted' then 'deleted' else 'current' end
         as "payloadState",
       case when state = 'active' then default_country end as "defaultCountry",
       null as "previousPayload", 'removed' as "previousPayloadState"
     from ${tables.bookings} where booking_id = $1 and revision > 0`,
    [bookingId, asId],
  );
  const [row] = rows;
  return row === undefined ? null : toChange(row);
}
