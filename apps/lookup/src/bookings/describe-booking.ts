import { hash } from "node:crypto";
import { toCanonicalJson } from "@booking-events/bookings";
import {
  type BookingStatus,
  cleanReference,
  decodeFormFields,
  decodeUtf8,
  type ReferenceKind,
} from "@booking-events/schema";
import type { PartnerBooking } from "@booking-events/store";

const maxReferenceCharacters = 8_192;

/**
 * @param query as Node has it: each of its bytes is a character
 * @returns undefined if the query does not name one booking
 */
export function readBookingQuery(query: string): { reference: string; referenceKind: ReferenceKind } | undefined {
  const parameters = decodeFormFields(decodeUtf8(Buffer.from(query, "latin1")) ?? "%");
  const valuesOf = (wanted: string) => (parameters ?? []).filter(([name]) => name === wanted).map(([, value]) => value);
  const [references, kinds] = [valuesOf("reference"), valuesOf("referenceKind")];
  const [reference, referenceKind = "trip"] = [readReference(references[0]), kinds[0]];
  if (references.length !== 1 || kinds.length > 1 || reference === undefined) return undefined;
  return isReferenceKind(referenceKind) ? { reference, referenceKind } : undefined;
}

/** @returns the reference as it is compared; undefined if the value can't be one */
export function readReference(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > 2 * maxReferenceCharacters) return undefined;
  if (!value.isWellFormed() || value.includes("\0")) return undefined;
  const reference = cleanReference(value);
  return reference === "" || Array.from(reference).length > maxReferenceCharacters ? undefined : reference;
}

export function isReferenceKind(value: unknown): value is ReferenceKind {
  return value === "trip" || value === "consumer";
}

/** A booking for its partner: how it stands, and a digest by which the partner can compare the content. */
export function describeBooking(booking: PartnerBooking | "erased"): BookingStatus {
  if (booking === "erased") return { state: "erased" };
  const { state, revision, decidedBy, payload } = booking;
  const described = { revision, decidedBy, updatedAt: booking.updatedAt.toISOString() };
  // The content of a deleted booking is no longer the booking's.
  return state === "deleted" ? { state, ...described } : { state, ...described, digest: digestContent(payload) };
}

/** The SHA-256 of the content as canonical JSON (RFC 8785), in hex. Partners compute the same. */
export function digestContent(payload: unknown): string {
  return hash("sha256", toCanonicalJson(payload), "hex");
}
