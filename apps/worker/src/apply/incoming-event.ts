import { hash } from "node:crypto";
import { type FoldEvent, toCanonicalJson } from "@booking-events/bookings";
import { bookingReferenceOf, type EventEnvelope, referenceKindOf } from "@booking-events/schema";
import {
  type BookingIdentity,
  bookingKey,
  contactsOf,
  type DigestKey,
  hashContacts,
  readTrip,
  type Trip,
  toJsonbText,
} from "@booking-events/store";

/** An event to apply. All that depends on its envelope is computed once. */
export interface IncomingEvent extends FoldEvent, BookingIdentity {
  idempotencyKey: string | null;
  secretId: string | null;
  payload: string;
  /** See `bookings.guest_hashes`. */
  guestHashes: readonly string[];
  trip: Trip | null;
}

export function toIncomingEvent(envelope: EventEnvelope, key: DigestKey): IncomingEvent {
  const reference = bookingReferenceOf(envelope.payload);
  const referenceKind = referenceKindOf(envelope.payload);
  return {
    id: envelope.eventId,
    partner: envelope.partner,
    kind: envelope.kind,
    referenceKind,
    reference,
    bookingKey: bookingKey(envelope.partner, referenceKind, reference),
    sequence: envelope.sequence,
    idempotencyKey: envelope.idempotencyKey,
    secretId: envelope.secretId ?? null,
    hasIdempotencyKey: envelope.idempotencyKey !== null,
    payload: toJsonbText(envelope.payload),
    contentDigest: key.digestContent(hash("sha256", toCanonicalJson(envelope.payload), "hex")),
    guestHashes: hashContacts(key, contactsOf(envelope.payload)),
    trip: readTrip(envelope.payload),
    receivedAt: new Date(envelope.receivedAt),
  };
}

/** Returns a name that events and rows have in common exactly if they belong to the same booking. */
export function nameBooking({ bookingKey }: { bookingKey: Buffer }): string {
  return bookingKey.toString("latin1");
}
