import type { ReferenceKind } from "@booking-events/schema";
import { sha256 } from "./sha256.ts";

/**
 * Returns a booking's identity: the SHA-256 of the partner's id, the kind of the reference, and the reference. An index
 * row of PostgreSQL can't hold a reference of 8,192 characters; the digest has 32 bytes.
 */
export function bookingKey(partner: string, kind: ReferenceKind, reference: string): Buffer {
  // Neither a partner's id nor a reference contains a zero byte, so no two bookings have the same text.
  const namespace = kind === "trip" ? "" : `${kind}\0`;
  return sha256(`${partner}\0${namespace}${reference}`);
}

/**
 * Returns a number by which a consumer's trips are found: the beginning of the key that a booking of the consumer's
 * reference has. Two references may have the same number, but 48 bits make that rare.
 */
export function consumerHash(keyOfConsumer: Buffer): number {
  return keyOfConsumer.readUIntBE(0, 6);
}
