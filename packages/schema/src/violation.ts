/** A violated rule. It is safe to send and to log because it never contains a value that was sent. */
export type Violation = {
  /** What to send instead, in sentences. */
  message: string;
  /**
   * The path from the payload to the violation; array indexes are strings of digits. Empty for the payload itself. A
   * name longer than 255 UTF-16 code units is truncated and ends with "…", and an unpaired surrogate is replaced by
   * U+FFFD.
   */
  propertyPath: string[];
};

/**
 * The maximum number of violations in an answer. A payload that violates every rule of every listed field has fewer.
 */
export const maxViolations = 50;
