import { hash } from "node:crypto";

/**
 * The identity of a booking: SHA-256 over the partner's id and the reference. A reference may have 1,024 characters,
 * which is more than an index row of PostgreSQL can hold; the digest has 32 bytes.
 */
export function bookingKey(partner: string, reference: string): Buffer {
  // A partner's id holds no zero byte, so no two pairs give the same text.
  return hash("sha256", `${partner}\0${reference}`, "buffer");
}
