import { createHash } from "node:crypto";
import { type Delivery, isTestSubject } from "@booking-events/queue";
import { arrivalDayOf, bookingReferenceOf, parseEnvelopeText, referenceKindOf } from "@booking-events/schema";

/**
 * Says what is known of an event that may not be applied. If its envelope can't be read, that is its id, and whether a
 * test partner has sent it.
 */
export function identifyEvent({ text, subject, jobId }: Delivery) {
  const parsed = parseEnvelopeText(text);
  const envelope = parsed.success ? parsed.envelope : null;
  return {
    eventId: envelope?.eventId ?? toEventId(jobId),
    partner: envelope?.partner ?? null,
    kind: envelope?.kind ?? null,
    referenceKind: envelope && referenceKindOf(envelope.payload),
    reference: envelope && bookingReferenceOf(envelope.payload),
    sequence: envelope?.sequence ?? null,
    arrivalDay: envelope && arrivalDayOf(envelope.payload),
    traceparent: envelope?.traceparent ?? null,
    isTest: envelope === null ? isTestSubject(subject) : envelope.test === true,
  };
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The queue's ids are event ids. Any other id is of a job that ingest did not queue, and becomes a UUIDv8. */
export function toEventId(jobId: string): string {
  if (uuidPattern.test(jobId)) return jobId;
  const hex = createHash("sha256").update(jobId).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
