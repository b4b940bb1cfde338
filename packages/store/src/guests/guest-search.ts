import { bookingReferenceOf, type EventKind, parseEnvelopeText, referenceKindOf } from "@booking-events/schema";
import type { BookingToErase } from "./booking-to-erase.ts";
import { type ContactKind, contactsOf, normalizeContact } from "./guest-contacts.ts";

export interface GuestSearch {
  by: ContactKind | "reference";
  /** In its normalized form: see {@link normalizeContact}. A reference is as sent. */
  value: string;
  /** Undefined: all partners. */
  partner: string | undefined;
}

/** An event as it is in the queue or in a dead letter, whose content matches a search. */
export type MatchingEvent =
  | { isReadable: true; booking: BookingToErase; kind: EventKind }
  /** No worker can read the event, but its text contains the value. */
  | { isReadable: false };

/** Fewer digits may be in an unreadable text by chance. */
const minDigitsInText = 7;

/**
 * @param text of an event's envelope
 * @param isKnown whether a booking matches, whatever this event of it contains
 * @returns undefined if it does not match
 */
export function matchEnvelope(
  search: GuestSearch,
  text: string,
  isKnown: (booking: BookingToErase) => boolean = () => false,
): MatchingEvent | undefined {
  const parsed = parseEnvelopeText(text);
  if (!parsed.success) return containsValue(search, text) ? { isReadable: false } : undefined;
  const { eventId: id, partner, kind, sequence, receivedAt, payload } = parsed.envelope;
  const event = { id, sequence, receivedAt: new Date(receivedAt) };
  const booking = { partner, referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload), event };
  const matches = ((search.partner ?? partner) === partner && matchPayload(search, payload)) || isKnown(booking);
  return matches ? { isReadable: true, booking, kind } : undefined;
}

export function matchPayload({ by, value }: GuestSearch, payload: { [field: string]: unknown }): boolean {
  if (by !== "reference") return normalizeContact(by, contactsOf(payload)[by]) === value;
  return ["consumerTripPartnerExternalReference", "consumerPartnerExternalReference"].some(
    (field) => payload[field] === value,
  );
}

/** Parts of longer addresses and numbers don't count: the event may be another guest's. */
function containsValue({ by, value }: GuestSearch, text: string): boolean {
  switch (by) {
    case "email":
      return new RegExp(`(?<![\\w.%+-])${escapePattern(value)}(?![\\w.-])`, "i").test(text);
    case "phone":
      return (
        value.length >= minDigitsInText && new RegExp(`(?<!\\d)${[...value].join("[\\s().\\-/]*")}(?!\\d)`).test(text)
      );
    case "reference":
      return new RegExp(`PartnerExternalReference"\\s*:\\s*${escapePattern(JSON.stringify(value))}`).test(text);
  }
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
