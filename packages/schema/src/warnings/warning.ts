import * as v from "valibot";

/** What is doubtful about an accepted payload. */
export const warningCodes = [
  "similar-name",
  "unreadable-phone",
  "unreadable-flag",
  "unreadable-language",
  "unreadable-nationality",
  "unreadable-currency",
  "unreadable-airport-code",
  "unreadable-country",
] as const;
export type WarningCode = (typeof warningCodes)[number];

/** A likely mistake in an accepted payload. It is safe to send and to log because it never contains a value. */
export const Warning = v.object({
  /** What to send instead, in sentences. The wording may change. */
  message: v.string(),
  /** Names what is doubtful, and never changes its meaning. Later releases may add codes. */
  code: v.picklist(warningCodes),
  /** The name of the field, in an array, as in violations. */
  propertyPath: v.array(v.string()),
});
export type Warning = v.InferOutput<typeof Warning>;

export const maxWarnings = 20;
