import type { Queryable } from "../connect/queryable.ts";
import type { BookingDetails } from "./booking-details.ts";

/**
 * Reads a booking as it was at a time of receipt.
 *
 * @returns undefined: it came later, or the log does not have it from then any more
 */
export async function findBookingAt(
  client: Queryable,
  bookingKey: Buffer,
  at: Date,
): Promise<BookingDetails | undefined> {
  const { rows } = await client.query<BookingDetails>(
    `select booking.partner, booking.reference_kind as "referenceKind", booking.reference, state_after as state,
       coalesce(decider.sequence, history.sequence) as sequence, payload_after as payload,
       created_at as "createdAt", coalesce(decider.received_at, history.received_at) as "updatedAt",
       case state_after when 'deleted' then coalesce(decider.received_at, history.received_at) end as "deletedAt",
       case when payload_after is null then content_removed_at end as "contentRemovedAt"
     from bookings as booking
     join booking_at($2) as history on history.booking_id = booking.booking_id
     left join lateral (
       select sequence, received_at from booking_events where id = history.decided_by limit 1
     ) as decider on true
     where booking.booking_key = $1`,
    [bookingKey, at],
  );
  return rows[0];
}
