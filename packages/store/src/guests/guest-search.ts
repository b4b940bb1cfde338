import {
  bookingReferenceOf,
  cleanReference,
  type EventKind,
  parseEnvelopeText,
  referenceKindOf,
} from "@booking-events/schema";
import type { SentContent } from "../tables/content-columns.ts";
import type { BookingToErase } from "./booking-to-erase.ts";
import { type ContactForms, type ContactKind, contactFields, formsOfContact } from "./guest-contacts.ts";

interface ReferenceSearch {
  by: "reference";
  /** Cleaned. */
  value: string;
}

interface ContactSearch {
  by: ContactKind;
  forms: ContactForms;
}

export type GuestSearch = (ReferenceSearch | ContactSearch) & {
  /** Undefined: all partners. */
  partner: string | undefined;
};

/**
 * `exact`: it is the value, however it was written. `near`: it may be, such as a phone number whose end is the same, but
 * the country of one of them is not known.
 */
export type Closeness = "exact" | "near";

/** @returns undefined if there is nothing in the value to search for */
export function toGuestSearch(
  by: GuestSearch["by"],
  value: string,
  partner: string | undefined,
): GuestSearch | undefined {
  if (by === "reference") {
    const reference = cleanReference(value);
    return reference === "" ? undefined : { by, value: reference, partner };
  }
  const forms = formsOfContact(by, { payload: { [contactFields[by]]: value }, defaultCountry: null });
  return forms === undefined || forms.same.length + forms.near.length === 0 ? undefined : { by, forms, partner };
}

/** An event as it is in the queue or in a dead letter, whose content matches a search. */
export type MatchingEvent = { closeness: Closeness } & (
  | { isReadable: true; booking: BookingToErase; kind: EventKind; isTest: boolean }
  /** No worker can read the event, but its text contains the value. */
  | { isReadable: false }
);

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
  if (!parsed.success) return containsValue(search, text) ? { isReadable: false, closeness: "exact" } : undefined;
  const { eventId: id, partner, kind, sequence, receivedAt, payload, defaultCountry = null, test } = parsed.envelope;
  const event = { id, sequence, receivedAt: new Date(receivedAt) };
  const booking = { partner, referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload), event };
  const isOfPartner = (search.partner ?? partner) === partner;
  const found = isOfPartner ? matchContent(search, { payload, defaultCountry }) : undefined;
  const closeness = isKnown(booking) ? "exact" : found;
  return closeness && { isReadable: true, closeness, booking, kind, isTest: test === true };
}

export function matchContent(search: GuestSearch, content: SentContent): Closeness | undefined {
  if (search.by === "reference") return isReferredTo(search.value, content) ? "exact" : undefined;
  const forms = formsOfContact(search.by, content);
  if (forms === undefined) return undefined;
  if (haveCommon(search.forms.same, forms.same)) return "exact";
  return haveCommon(search.forms.near, forms.near) ? "near" : undefined;
}

function isReferredTo(reference: string, { payload }: SentContent): boolean {
  const { consumerTripPartnerExternalReference, consumerPartnerExternalReference } = payload;
  return [consumerTripPartnerExternalReference, consumerPartnerExternalReference].some(
    (sent) => typeof sent === "string" && cleanReference(sent) === reference,
  );
}

function haveCommon(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.includes(one));
}

/** Parts of longer addresses and numbers don't count: the event may be another guest's. */
function containsValue(search: GuestSearch, text: string): boolean {
  if (search.by === "reference")
    return new RegExp(`PartnerExternalReference"\\s*:\\s*${escapePattern(JSON.stringify(search.value))}`).test(text);
  return search.forms.same.some((form) => (search.by === "email" ? hasAddress(text, form) : hasNumber(text, form)));
}

function hasAddress(text: string, address: string): boolean {
  return new RegExp(`(?<![\\w.%+-])${escapePattern(address)}(?![\\w.-])`, "i").test(text);
}

function hasNumber(text: string, number: string): boolean {
  const digits = number.replace(/\D/g, "");
  return (
    digits.length >= minDigitsInText && new RegExp(`(?<!\\d)${[...digits].join("[\\s().\\-/]*")}(?!\\d)`).test(text)
  );
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
