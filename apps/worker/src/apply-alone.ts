import type { Outcome } from "@booking-events/bookings";
import { type EventEnvelope, parseEnvelopeText } from "@booking-events/schema";
import { type AppliedEvent, InvalidEnvelope, type QueuedEvent } from "./apply-in-batches.ts";

/**
 * Applies one event at once, without any other.
 *
 * @throws InvalidEnvelope; what `apply` throws
 */
export async function applyAlone(
  { text }: QueuedEvent,
  apply: (envelopes: EventEnvelope[]) => Promise<ReadonlyMap<string, Outcome>>,
): Promise<AppliedEvent> {
  const parsed = parseEnvelopeText(text);
  if (!parsed.success) throw new InvalidEnvelope(parsed.problem);
  const { eventId, partner, kind, sequence } = parsed.envelope;
  const outcome = (await apply([parsed.envelope])).get(eventId);
  if (outcome === undefined) throw new Error("An event that is applied alone is not left out.");
  return { eventId, partner, kind, sequence, outcome };
}
