import type { ReferenceKind } from "@booking-events/schema";

/** A booking to erase, which may not be in `bookings`. */
export interface BookingToErase {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  /** One of its events. */
  event: { id: string; sequence: number; receivedAt: Date };
}
