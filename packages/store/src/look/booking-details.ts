import type { BookingState } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import type { BookingIdentity } from "../tables/bookings.ts";

export interface BookingDetails
  extends Omit<BookingIdentity, "bookingKey">,
    Pick<BookingState, "state" | "sequence" | "createdAt" | "updatedAt" | "deletedAt"> {
  payload: unknown;
  /** When the content of the deleted booking was removed; null: it was not. */
  contentRemovedAt: Date | null;
}

type Found = BookingDetails & { bookingKey: Buffer; bookingId: string; erasedAt: Date | null };

export async function findBookings(client: Queryable, bookingKeys: Buffer[]): Promise<Found[]> {
  const { rows } = await client.query<Found>(
    `select booking_key as "bookingKey", booking_id as "bookingId", partner, reference_kind as "referenceKind", reference, state, sequence, payload,
       created_at as "createdAt", updated_at as "updatedAt", deleted_at as "deletedAt",
       content_removed_at as "contentRemovedAt", erased_at as "erasedAt"
     from bookings
     where booking_key = any($1)`,
    [bookingKeys],
  );
  return rows;
}
