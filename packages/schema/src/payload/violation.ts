import * as v from "valibot";

/** What is wrong with a value. */
export const violationCodes = [
  "missing",
  "null",
  "number",
  "boolean",
  "array",
  "object",
  "too-long",
  "malformed",
  "unstorable",
  "too-many-digits",
  "too-deep",
  "too-many-values",
  "not-an-object",
  "not-json",
] as const;
export type ViolationCode = (typeof violationCodes)[number];

/** A violated rule. */
export const Violation = v.object({
  /** What to send instead, in sentences. The wording may change. */
  message: v.string(),
  /** Names what is wrong, and never changes its meaning. Later releases may add codes. */
  code: v.picklist(violationCodes),
  /** The path from the payload to the violation. Array indexes are strings of digits. Empty: the payload itself. */
  propertyPath: v.array(v.string()),
});
/**
 * It is safe to send and to log because it never contains a value that was sent.
 *
 * In `propertyPath`, a name longer than 255 UTF-16 code units is truncated and ends with "…", and an unpaired surrogate
 * is replaced by U+FFFD.
 */
export type Violation = v.InferOutput<typeof Violation>;

/**
 * The maximum number of violations in an answer. A payload that violates every rule of every listed field has fewer.
 */
export const maxViolations = 50;
