import type { ReferenceKind } from "@booking-events/schema";
import { sha256 } from "./sha256.ts";

/**
 * Returns a booking's identity: the SHA-256 of the partner's id, the kind of the reference, and the reference. An index
 * row of PostgreSQL can't hold a reference of 1,024 characters; the digest has 32 bytes.
 */
export function bookingKey(partner: string, kind: ReferenceKind, reference: string): Buffer {
  // Neither a partner's id nor a reference contains a zero byte, so no two bookings have the same text.
  const namespace = kind === "trip" ? "" : `${kind}\0`;
  return sha256(`${partner}\0${namespace}${reference}`);
}
