import { hash } from "node:crypto";
import { bookingReferenceOf, type EventEnvelope } from "@booking-events/schema";

/** 96 bits. Two bookings that share a subject by chance do no harm; they only wait for each other. */
const digestLength = 16;

/** The end of the subjects of test partners' events. */
export const testSuffix = " test";

/**
 * Returns the partner's id, a space, and a digest of the reference; for a test partner, also {@link testSuffix}. The
 * subject is the same for all events of a booking, and for a trip and a consumer with the same reference. It contains
 * nothing that the partner wrote. It is a field of the job, so a worker can tell which events belong together before it
 * parses them, and operators' lists which events are not of real bookings. Where an event is applied does not depend on
 * it.
 */
export function digestSubject({ partner, payload, test }: Pick<EventEnvelope, "partner" | "payload" | "test">): string {
  return subjectOf(partner, bookingReferenceOf(payload), test);
}

export function subjectOf(partner: string, reference: string, isTest = false): string {
  const digest = hash("sha256", `${partner}\0${reference}`, "base64url").slice(0, digestLength);
  return `${partner} ${digest}${isTest ? testSuffix : ""}`;
}

/** Whether a subject is that of a test partner's event. For an event that can't be read, nothing else says so. */
export function isTestSubject(subject: string): boolean {
  return /^[^ ]+ [\w-]{16} test$/.test(subject);
}

/**
 * Returns the subject of a job that has none, since another program has queued it. It differs from all others. For
 * fairness, all such jobs count as one partner.
 */
export function ownSubject(jobId: string): string {
  return `job: ${jobId}`;
}
