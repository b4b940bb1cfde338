import { hash } from "node:crypto";
import { bookingReferenceOf, type EventEnvelope } from "@booking-events/schema";

/** 96 bits: two bookings that share a subject by chance do no harm, they only wait for each other. */
const digestLength = 16;

/**
 * What an event is about, short and without what the partner wrote: the partner's id, a space, and a digest that is the
 * same for all events of a booking, and for a trip and a consumer whose references are the same text. It is a field of
 * the job, so that a worker can tell which events belong together before it parses any. Nothing relies on it but speed,
 * and that partners take turns.
 */
export function digestSubject({ partner, payload }: Pick<EventEnvelope, "partner" | "payload">): string {
  const digest = hash("sha256", `${partner}\0${bookingReferenceOf(payload)}`, "base64url").slice(0, digestLength);
  return `${partner} ${digest}`;
}

/**
 * The subject of a job that has none, since it was put back or comes from an older release: it belongs to no other. All
 * such jobs together take turns like those of one partner.
 */
export function ownSubject(jobId: string): string {
  return `job: ${jobId}`;
}
