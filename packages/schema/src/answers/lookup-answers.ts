import type { Activity } from "./activity.ts";
import { type Answer, refused, refusedForNow } from "./answer.ts";
import type { InvalidListBody } from "./answer-bodies.ts";
import type { ListViolation } from "./list-violations.ts";
import type { BookingStatus, Receipt } from "./lookup-bodies.ts";

// Every body that answers a partner's question, besides those in answers.ts. None contains a secret. Only the answer to a
// list contains what the partner wrote, the booking's reference, and only the readings of a booking contain values.

export const invalidQuery = refused(
  400,
  "invalid-query",
  "The query is not valid UTF-8. Percent-encode each of its values as UTF-8, such as Zo%C3%AB for Zoë.",
);

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
  "Send one reference in the query, percent-encoded and not blank, and referenceKind=consumer if it is a consumer's.",
);

export const invalidFields = refused(
  400,
  "invalid-fields",
  "fields names a field of which we read nothing. Name listed fields that we read, such as " +
    "fields=consumerPhone,consumerTripArrivalDate, or send fields=all.",
);
/** The operator has switched values off. */
export const readingsOff = refused(
  400,
  "readings-off",
  "This service does not return what it reads of your fields. Leave out fields.",
);

export const invalidListLine = (violationList: ListViolation[]): Answer => ({
  status: 400,
  code: "invalid-list-line",
  body: JSON.stringify({
    message: "The list has invalid lines. Correct them, and send the whole list again.",
    code: "invalid-list-line",
    violationList,
  } satisfies InvalidListBody),
});
export const emptyList = refused(
  400,
  "empty-list",
  "The list is empty. If you have no active booking, add allowEmpty=true to the query. Otherwise, check your export.",
);
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
  "You are sending another list at the moment. Retry after the delay in Retry-After.",
  { "Retry-After": "10" },
);

export const activityFound = (activity: Activity): Answer => ({
  status: 200,
  code: "activity-found",
  body: JSON.stringify(activity),
});
export const invalidDay = refused(
  400,
  "invalid-day",
  "day must be one of the last seven days in UTC, such as 2027-05-02. Leave it out for the last 48 hours.",
);

export const noSuchPath = refused(
  404,
  "no-such-path",
  "No such path. Use /booking-event/receipt/{secret}/{eventId}, /booking-event/booking/{secret}?reference=…, " +
    "/booking-event/reconcile/{secret} or /booking-event/activity/{secret}.",
);
/** For an outage of Redis or PostgreSQL. */
export const lookupUnavailable = refusedForNow(
  503,
  "lookup-unavailable",
  5,
  "The question cannot be answered at the moment.",
);
