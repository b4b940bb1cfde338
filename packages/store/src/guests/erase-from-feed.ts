import type { Queryable } from "../connect/queryable.ts";
import { appendChanges } from "../tables/booking-changes.ts";
import type { StoredBooking } from "../tables/bookings.ts";

/** The changes keep the booking's id, by which readers find what they have to erase. */
export async function eraseFromFeed(client: Queryable, booking: StoredBooking): Promise<void> {
  const { bookingId, partner, referenceKind, revision, state, feedEventId } = booking;
  await client.query("update booking_changes set reference = null where booking_id = $1", [bookingId]);
  await appendChanges(client, [
    {
      bookingId,
      partner,
      referenceKind,
      reference: null,
      revision: revision + 1,
      change: "erased",
      eventId: state.eventId,
      sequence: state.sequence,
      previousEventId: feedEventId,
    },
  ]);
}
