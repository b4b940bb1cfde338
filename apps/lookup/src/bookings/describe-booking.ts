import { hash } from "node:crypto";
import { toCanonicalJson } from "@booking-events/bookings";
import { Refusal } from "@booking-events/http";
import { type BookingStatus, cleanReference, lookupAnswers, type ReferenceKind } from "@booking-events/schema";
import type { PartnerBooking } from "@booking-events/store";
import { readParameters } from "../read-parameters.ts";

const maxReferenceCharacters = 8_192;

/**
 * @param query as Node has it: each of its bytes is a character
 * @throws Refusal if the query does not name one booking
 */
export function readBookingQuery(query: string): { reference: string; referenceKind: ReferenceKind } {
  const valuesOf = readParameters(query);
  const [references, kinds] = [valuesOf("reference"), valuesOf("referenceKind")];
  const [reference, referenceKind = "trip"] = [readReference(references[0]), kinds[0]];
  const isOne = references.length === 1 && kinds.length <= 1;
  if (!isOne || reference === undefined || !isReferenceKind(referenceKind))
    throw new Refusal(lookupAnswers.invalidReference);
  return { reference, referenceKind };
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

/**
 * A booking for its partner: how it stands, a digest by which the partner can compare the content, and what was read of
 * the fields that the partner has asked for.
 */
export function describeBooking(booking: PartnerBooking | "erased"): BookingStatus {
  if (booking === "erased") return { state: "erased" };
  const { state, revision, decidedBy, payload, readings } = booking;
  const described = { revision, decidedBy, updatedAt: booking.updatedAt.toISOString() };
  // The content of a deleted booking is no longer the booking's.
  if (state === "deleted") return { state, ...described };
  const digest = digestContent(payload);
  return { state, ...described, digest, ...(Object.keys(readings).length > 0 && { readings }) };
}

/** The SHA-256 of the content as canonical JSON (RFC 8785), in hex. Partners compute the same. */
export function digestContent(payload: unknown): string {
  return hash("sha256", toCanonicalJson(payload), "hex");
}
