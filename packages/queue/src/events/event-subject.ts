import { hash } from "node:crypto";
import { bookingReferenceOf, type EventEnvelope } from "@booking-events/schema";

/** 96 bits. Two bookings that share a subject by chance do no harm; they only wait for each other. */
const digestLength = 16;

/**
 * Returns the partner's id, a space, and a digest of the reference. The subject is the same for all events of a
 * booking, and for a trip and a consumer with the same reference. It contains nothing that the partner wrote. It is a
 * field of the job, so a worker can tell which events belong together before it parses them. Only performance and
 * fairness between partners depend on it.
 */
export function digestSubject({ partner, payload }: Pick<EventEnvelope, "partner" | "payload">): string {
  return subjectOf(partner, bookingReferenceOf(payload));
}

export function subjectOf(partner: string, reference: string): string {
  const digest = hash("sha256", `${partner}\0${reference}`, "base64url").slice(0, digestLength);
  return `${partner} ${digest}`;
}

/**
 * Returns the subject of a job that has none, since another program has queued it. It differs from all others. For
 * fairness, all such jobs count as one partner.
 */
export function ownSubject(jobId: string): string {
  return `job: ${jobId}`;
}
