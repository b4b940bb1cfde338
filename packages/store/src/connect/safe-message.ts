/** Marks errors whose messages may be logged. The runtime package has the same symbol, and must not be imported here. */
export const safeMessage = Symbol.for("booking-events.safeMessage");
