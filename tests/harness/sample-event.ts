import type { EventEnvelope } from "@booking-events/schema";

const firstSequence = Date.UTC(2026, 10, 20) * 1_000;

/** The id of the event with this number. */
export function sampleEventId(number: number): string {
  return `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** An event as in the queue. The numbers are the order of receipt, and a second lies between two of them. */
export function sampleEvent(number: number, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const { sequence = firstSequence + number * 1_000_000 } = more;
  return {
    version: 1,
    eventId: sampleEventId(number),
    kind: "create",
    partner: "acme",
    sequence,
    receivedAt: new Date(sequence / 1_000).toISOString(),
    idempotencyKey: null,
    payload: { consumerTripPartnerExternalReference: "TRIP-1" },
    ...more,
  };
}
