import { hash } from "node:crypto";
import type { ReferenceKind } from "@booking-events/schema";

/**
 * The identity of a booking: SHA-256 over the partner's id, the kind of its reference and the reference. A reference may
 * have 1,024 characters, which is more than an index row of PostgreSQL can hold; the digest has 32 bytes.
 */
export function bookingKey(partner: string, kind: ReferenceKind, reference: string): Buffer {
  // Neither a partner's id nor a reference holds a zero byte, so no two bookings give the same text.
  const namespace = kind === "trip" ? "" : `${kind}\0`;
  return hash("sha256", `${partner}\0${namespace}${reference}`, "buffer");
}
