import type { BookingChange } from "@booking-events/feed";

/** A change that created a booking. */
export function aChange(more: Partial<BookingChange> = {}): BookingChange {
  return {
    id: 7,
    bookingId: "3f0d6a2c-6a51-4c0e-9a6e-0d6f6f6f0001",
    partner: "acme",
    referenceKind: "trip",
    reference: "TRIP-1",
    revision: 1,
    change: "created",
    eventId: "0199a000-0000-7000-8000-000000000001",
    sequence: 1_795_000_000_000_000,
    previousEventId: null,
    changedAt: new Date("2026-11-26T07:00:00.123Z"),
    payload: { consumerTripPartnerExternalReference: "TRIP-1" },
    payloadState: "as-changed",
    defaultCountry: null,
    previousPayload: null,
    previousPayloadState: "none",
    ...more,
  };
}
