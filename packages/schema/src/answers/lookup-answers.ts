import { type Answer, refused, refusedForNow } from "./answer.ts";
import type { BookingStatus, Receipt } from "./lookup-bodies.ts";

// Every body that answers a partner's question, besides those in answers.ts. None contains a secret, and only the answer
// to a list contains a value: the booking's reference.

export const receiptFound = (receipt: Receipt): Answer => ({
  status: 200,
  code: "receipt-found",
  body: JSON.stringify(receipt),
});
/** The same bytes for events that never existed, have left the log, or are another partner's. */
export const noSuchEvent = refused(404, "no-such-event", "There is no such event.");

export const bookingFound = (booking: BookingStatus): Answer => ({
  status: 200,
  code: "booking-found",
  body: JSON.stringify(booking),
});
export const noSuchBooking = refused(404, "no-such-booking", "There is no such booking.");
export const invalidReference = refused(
  400,
  "invalid-reference",
  "Send one reference of 1 to 8,192 characters in the query, percent-encoded, and referenceKind=consumer if it is a " +
    "consumer's.",
);

export const invalidListLine = (line: number, problem: string): Answer =>
  refused(400, "invalid-list-line", `Line ${line} of the list is invalid: ${problem}`);
export const unsupportedType = refused(
  415,
  "unsupported-type",
  "The Content-Type is missing or not supported. Send UTF-8 with Content-Type: application/x-ndjson.",
);
export const listTooLong = (maxLines: number): Answer =>
  refused(413, "list-too-long", `The list has more than ${maxLines} lines.`);
export const tooManyDifferences = refused(
  413,
  "too-many-differences",
  "The answer would be too long. Send fewer references at once.",
);
export const alreadyReconciling = refused(
  429,
  "already-reconciling",
  "You are sending another list at the moment. Retry after the delay in the Retry-After header.",
  { "Retry-After": "10" },
);

export const noSuchPath = refused(
  404,
  "no-such-path",
  "No such path. Use /booking-event/receipt/{secret}/{eventId}, /booking-event/booking/{secret}?reference=… or " +
    "/booking-event/reconcile/{secret}.",
);
/** For an outage of Redis or PostgreSQL. */
export const lookupUnavailable = refusedForNow(
  503,
  "lookup-unavailable",
  5,
  "The question cannot be answered at the moment.",
);
