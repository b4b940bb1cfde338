import { type Answer, refused } from "./answer.ts";

// Every body that answers a partner's question, besides those in answers.ts. None contains a secret or a value.

export const receiptFound = (receipt: object): Answer => ({
  status: 200,
  code: "receipt-found",
  body: JSON.stringify(receipt),
});
/** The same bytes for events that never existed, have left the log, or are another partner's. */
export const noSuchEvent = refused(404, "no-such-event", "There is no such event.");
export const noSuchPath = refused(404, "no-such-path", "No such path. Use /booking-event/receipt/{secret}/{eventId}.");
/** For an outage of Redis or PostgreSQL. */
export const unavailable = refused(
  503,
  "lookup-unavailable",
  "The question cannot be answered at the moment. Retry the same request after the delay in the Retry-After header.",
  { "Retry-After": "5" },
);
