import type { BookingRequest } from "../bookings/booking-request.ts";

/** The form to put a booking back to what it was after an event. */
export function restorePath(
  { partner, reference, referenceKind }: BookingRequest,
  { sequence }: { sequence: number },
): string {
  // The place is in microseconds, so the next millisecond is after the event.
  const at = new Date(Math.ceil(sequence / 1_000)).toISOString();
  const query = new URLSearchParams({ partner, reference, at });
  if (referenceKind !== undefined) query.set("kind", referenceKind);
  return `/restore?${query}`;
}
