import type { BookingIdentity } from "../tables/bookings.ts";

/** A booking to erase, which may not be in `bookings`. */
export interface BookingToErase extends Omit<BookingIdentity, "bookingKey"> {
  /** One of its events. */
  event: { id: string; sequence: number; receivedAt: Date };
}
