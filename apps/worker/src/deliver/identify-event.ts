import { createHash } from "node:crypto";
import type { Delivery } from "@booking-events/queue";
import {
  bookingReferenceOf,
  type EventKind,
  parseEnvelopeText,
  type ReferenceKind,
  referenceKindOf,
} from "@booking-events/schema";

/** What is known of an event that may not be applied. All but the id is null if its envelope can't be read. */
export interface EventIdentity {
  eventId: string;
  partner: string | null;
  kind: EventKind | null;
  referenceKind: ReferenceKind | null;
  reference: string | null;
  sequence: number | null;
  traceparent: string | null;
}

/** Reads as much as possible from the delivery's envelope. */
export function identifyEvent(delivery: Delivery): EventIdentity {
  const parsed = parseEnvelopeText(delivery.text);
  if (!parsed.success)
    return {
      eventId: toEventId(delivery.jobId),
      partner: null,
      kind: null,
      referenceKind: null,
      reference: null,
      sequence: null,
      traceparent: null,
    };
  const { eventId, partner, kind, sequence, traceparent = null, payload } = parsed.envelope;
  const referenceKind = referenceKindOf(payload);
  return { eventId, partner, kind, referenceKind, reference: bookingReferenceOf(payload), sequence, traceparent };
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The queue's ids are event ids. Any other id is of a job that ingest did not queue, and becomes a UUIDv8. */
export function toEventId(jobId: string): string {
  if (uuidPattern.test(jobId)) return jobId;
  const hex = createHash("sha256").update(jobId).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
