import * as v from "valibot";
import type { BookingFieldName } from "../payload/booking-input.ts";

/** What is doubtful about an accepted event. */
export const warningCodes = [
  "similar-name",
  "retired",
  "no-trip-reference",
  "untidy-reference",
  "wrong-content-type",
  "unstorable-text",
  "empty-key",
  "no-time-zone",
  "perhaps-the-day-before",
  "unreadable-phone",
  "unreadable-flag",
  "unreadable-language",
  "unreadable-nationality",
  "unreadable-currency",
  "unreadable-airport-code",
  "unreadable-country",
  "unreadable-date",
  "unreadable-email",
  "unreadable-time-zone",
] as const;
export type WarningCode = (typeof warningCodes)[number];

/** A likely mistake in a valid payload. */
export const Warning = v.object({
  /** What to send instead, in sentences. The wording may change. */
  message: v.string(),
  /** Names what is doubtful, and never changes its meaning. Later releases may add codes. */
  code: v.picklist(warningCodes),
  /** The name of the field, in an array, as in violations. Empty if the warning is about the request. */
  propertyPath: v.array(v.string()),
});
/** It is safe to send and to log because it never contains a value. */
export type Warning = v.InferOutput<typeof Warning>;

/** A warning, and what it is about. */
export interface FieldWarning extends Warning {
  /** The listed field: of a similar or retired name, the one to send instead. Empty if it is about another one, or the request. */
  field: BookingFieldName | "";
}

export const maxWarnings = 20;
