import * as v from "valibot";

/** What is wrong with a line of a list. */
export const ListViolation = v.object({
  /** The line, and what is wrong with it, in a sentence. The wording may change. */
  message: v.string(),
  /** Names what is wrong, and never changes its meaning. Later releases may add codes. */
  code: v.picklist(["malformed", "not-an-object", "repeated-key", "too-long", "contradiction"]),
  /** The number of the line, counted from 1, and the member if one is wrong. */
  propertyPath: v.array(v.string()),
});
export type ListViolation = v.InferOutput<typeof ListViolation>;

/** In an answer. The list is not read further then. */
export const maxListViolations = 50;
