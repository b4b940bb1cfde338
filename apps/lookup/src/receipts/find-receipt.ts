import type { Outcome } from "@booking-events/bookings";
import type { WaitingEvent } from "@booking-events/queue";
import type { Receipt } from "@booking-events/schema";
import type { RecordedEvent } from "@booking-events/store";

export interface ReceiptSources {
  /** @throws if the queue cannot be read */
  findWaiting: (eventId: string) => Promise<WaitingEvent | undefined>;
  /** @throws if the database cannot be read */
  findRecorded: (partner: string, eventId: string) => Promise<RecordedEvent | undefined>;
}

/** A UUIDv7, as ingest assigns it (RFC 9562). */
const eventIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Finds what became of a partner's event.
 *
 * The queue is read before the database. An accepted event leaves the queue only after the database has it, so an event
 * that moves in between is found in the database. With the opposite order it could be missed in both.
 *
 * @param text what stands in the place of the event's id
 * @returns undefined if the partner has no such event
 * @throws if the queue or the database cannot be read, and the answer depends on it
 */
export async function findReceipt(
  sources: ReceiptSources,
  partner: string,
  text: string,
): Promise<Receipt | undefined> {
  const eventId = text.toLowerCase();
  if (!eventIdPattern.test(eventId)) return undefined;
  const [queue] = await Promise.allSettled([sources.findWaiting(eventId)]);
  const recorded = await sources.findRecorded(partner, eventId);
  // The database's answer is final, so Redis may be down.
  if (recorded !== undefined && recorded.outcome !== null) return toReceipt(eventId, recorded, recorded.outcome);
  if (queue.status === "rejected") throw queue.reason;
  if (queue.value?.partner === partner) return { eventId, status: "waiting" };
  const letter = recorded?.deadLetter ?? null;
  if (letter === null) return undefined;
  if (letter.isErased) return { eventId, status: "erased" };
  return letter.isReplayed ? { eventId, status: "waiting" } : { eventId, status: "failed", code: letter.errorCode };
}

function toReceipt(eventId: string, recorded: RecordedEvent, outcome: Outcome): Receipt {
  const { duplicateOf, decidedBy, warnings } = recorded;
  if (recorded.isErased || outcome === "erased") return { eventId, status: "erased" };
  const more = warnings.length === 0 ? { decidedBy } : { decidedBy, warnings: [...warnings] };
  switch (outcome) {
    case "expired":
      return { eventId, status: "expired" };
    case "duplicate":
      return { eventId, status: "duplicate", duplicateOf, ...more };
    case "superseded":
      return { eventId, status: "superseded", ...more };
    default:
      return { eventId, status: "applied", outcome, ...more };
  }
}
