import type { FieldWarning } from "./warning.ts";

/** Of what is read before the payload, or takes more than one of them to see. A receiver finds these itself. */
export const requestWarnings = {
  "wrong-content-type": {
    message: "The body was read as JSON, although its Content-Type is missing or another one. Set application/json.",
    code: "wrong-content-type",
    propertyPath: [],
    field: "",
  },
  "empty-key": {
    message: "The idempotency key is empty and counts as absent. Send a key of its own with each event.",
    code: "empty-key",
    propertyPath: [],
    field: "",
  },
} satisfies Record<string, FieldWarning>;

export const dayBeforeAdvice =
  "Nearly all of your times in UTC are the same time of day, as if midnights of another time zone had been converted. " +
  "Such a date is a day early. Send the day alone, such as 2026-06-14.";
