import { randomUUID } from "node:crypto";
import type { BookingChange } from "@booking-events/feed";
import type { BookingPayload, ReferenceKind } from "@booking-events/schema";
import { toBookingColumns } from "./booking-columns.ts";

/** CloudEvents 1.0. */
export interface WebhookEvent {
  specversion: "1.0";
  /** The change's place in the feed. */
  id: string;
  /** The partner. */
  source: string;
  type: `booking.${BookingChange["change"]}` | "booking.test";
  /** The booking's reference, or its `bookingId` if it has been erased. */
  subject: string;
  time: string;
  datacontenttype: "application/json";
  data: ChangeData | ErasedData | { bookingId: string };
}

interface ErasedData {
  bookingId: string;
  revision: number;
  change: BookingChange["change"];
}

interface ChangeData extends ErasedData {
  referenceKind: ReferenceKind;
  /** The listed and other fields of the payload whose values differ. Null: it is not known which. */
  changedFields: string[] | null;
  sequence: number;
  eventId: string;
  /** The following ones only if the subscriber gets full events. */
  payloadState?: BookingChange["payloadState"];
  /** As in the view `booking_details`. Null: see `payloadState`. */
  booking?: Record<string, unknown> | null;
  /** The payload as the partner sent it. Null: see `payloadState`. */
  sent?: BookingPayload | null;
}

/**
 * Describes a change to a subscriber. Of a booking that has been erased, by this change or a later one, it says nothing
 * but which booking that was. `JSON.stringify` writes all digits of its numbers.
 */
export function toEvent(
  change: BookingChange,
  { payload, changedFields }: { payload: "thin" | "full"; changedFields: string[] | null },
): WebhookEvent {
  return {
    specversion: "1.0",
    id: String(change.id),
    source: change.partner,
    type: `booking.${change.change}`,
    subject: change.reference ?? change.bookingId,
    time: change.changedAt.toISOString(),
    datacontenttype: "application/json",
    data: change.reference === null ? toErased(change) : toData(change, payload, changedFields),
  };
}

/** What `ops subscriptions test` posts. It is about no booking. */
export function testEvent(now: Date): WebhookEvent {
  const bookingId = randomUUID();
  return {
    specversion: "1.0",
    id: `test-${bookingId}`,
    source: "booking-events",
    type: "booking.test",
    subject: bookingId,
    time: now.toISOString(),
    datacontenttype: "application/json",
    data: { bookingId },
  };
}

function toErased({ bookingId, revision, change }: BookingChange): ErasedData {
  return { bookingId, revision, change };
}

function toData(change: BookingChange, payload: "thin" | "full", changedFields: string[] | null): ChangeData {
  const thin: ChangeData = {
    bookingId: change.bookingId,
    referenceKind: change.referenceKind,
    revision: change.revision,
    change: change.change,
    changedFields,
    sequence: change.sequence,
    eventId: change.eventId,
  };
  if (payload === "thin") return thin;
  const sent = change.payload as BookingPayload | null;
  return {
    ...thin,
    payloadState: change.payloadState,
    booking: sent === null ? null : toBookingColumns(change, sent),
    sent,
  };
}
