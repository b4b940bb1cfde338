import { bookingReferenceOf, type EventEnvelope } from "@booking-events/schema";
import { bookingKey } from "@booking-events/store";
import { contentDigest } from "./content-digest.ts";
import type { FoldEvent } from "./fold.ts";

/** An event to apply, with what is derived from its envelope once. */
export interface IncomingEvent extends FoldEvent {
  partner: string;
  reference: string;
  bookingKey: Buffer;
  idempotencyKey: string | null;
  /** JSON text. */
  payload: string;
}

export function toIncomingEvent(envelope: EventEnvelope): IncomingEvent {
  const reference = bookingReferenceOf(envelope.payload);
  return {
    id: envelope.eventId,
    partner: envelope.partner,
    kind: envelope.kind,
    reference,
    bookingKey: bookingKey(envelope.partner, reference),
    sequence: envelope.sequence,
    idempotencyKey: envelope.idempotencyKey,
    hasIdempotencyKey: envelope.idempotencyKey !== null,
    payload: JSON.stringify(envelope.payload),
    contentDigest: contentDigest(envelope.payload),
    receivedAt: new Date(envelope.receivedAt),
  };
}
