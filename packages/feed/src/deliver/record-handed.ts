import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "../tables.ts";

/** Remembers that a booking is being handed to a consumer. So it will be told if the booking is erased. */
export async function recordHanded(
  client: Queryable,
  { handed, readers }: FeedTables,
  booking: { name: string; token: string; bookingId: string; isInside: boolean },
): Promise<void> {
  await client.query(
    `insert into ${handed} (reader, booking_id, is_inside)
     select name, $3, $4 from ${readers} where name = $1 and active_id = $2
     on conflict (reader, booking_id) do update set is_inside = excluded.is_inside`,
    [booking.name, booking.token, booking.bookingId, booking.isInside],
  );
}
