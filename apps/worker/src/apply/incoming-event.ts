import { hash } from "node:crypto";
import { type FoldEvent, toCanonicalJson } from "@booking-events/bookings";
import { type BookingPayload, bookingReferenceOf, type EventEnvelope, referenceKindOf } from "@booking-events/schema";
import { type BookingIdentity, bookingKey, type DigestKey, hashContacts, toJsonbText } from "@booking-events/store";

/** An event to apply. All that depends on its envelope is computed once. */
export interface IncomingEvent extends FoldEvent, BookingIdentity {
  idempotencyKey: string | null;
  secretId: string | null;
  payload: string;
  /** See `bookings.guest_hashes`. */
  guestHashes: readonly string[];
  defaultCountry: string | null;
  /** The codes of what ingest warned the partner of. */
  sentWarnings: readonly string[];
  /** As sent: {@link payload}, parsed. */
  sent: BookingPayload;
}

export function toIncomingEvent(envelope: EventEnvelope, key: DigestKey): IncomingEvent {
  const reference = bookingReferenceOf(envelope.payload);
  const referenceKind = referenceKindOf(envelope.payload);
  const { payload, defaultCountry = null } = envelope;
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
    payload: toJsonbText(payload),
    sent: payload,
    defaultCountry,
    sentWarnings: envelope.warnings ?? [],
    contentDigest: key.digestContent(hash("sha256", toCanonicalJson(payload), "hex")),
    guestHashes: hashContacts(key, { payload, defaultCountry }),
    receivedAt: new Date(envelope.receivedAt),
  };
}

/** Returns a name that events and rows have in common exactly if they belong to the same booking. */
export function nameBooking({ bookingKey }: { bookingKey: Buffer }): string {
  return bookingKey.toString("latin1");
}
