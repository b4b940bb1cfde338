/** One broken rule. It is safe to send and to log: it never holds a value that was sent. */
export type Violation = {
  /** What to send instead, as sentences for a person. */
  message: string;
  /**
   * The names that lead from the payload to what is wrong; an array's index is a name in digits. Empty: the payload
   * itself. Of a name longer than 255 UTF-16 code units, the beginning and "…". Half of a surrogate pair is U+FFFD in it.
   */
  propertyPath: string[];
};

/** An answer lists no more violations than this. A payload that breaks every rule of every listed field has fewer. */
export const maxViolations = 50;
