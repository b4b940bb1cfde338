import type { Outcome } from "@booking-events/bookings";
import type { EventEnvelope } from "@booking-events/schema";
import { type QueuedEvent, readEnvelope } from "./read-envelope.ts";
import type { AppliedEvent } from "./take-batch.ts";

/**
 * Applies one event immediately, in a transaction of its own.
 *
 * @throws InvalidEnvelope, LaterVersion; what `apply` throws
 */
export async function applyAlone(
  { text }: QueuedEvent,
  apply: (envelopes: EventEnvelope[]) => Promise<ReadonlyMap<string, Outcome>>,
): Promise<AppliedEvent> {
  const envelope = readEnvelope(text);
  const { eventId, partner, kind, sequence } = envelope;
  const outcome = (await apply([envelope])).get(eventId);
  if (outcome === undefined) throw new Error("An event that is applied alone always has an outcome.");
  return { eventId, partner, kind, sequence, outcome };
}
