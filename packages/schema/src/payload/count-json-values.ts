import { ExactNumber } from "../json/exact-number.ts";
import { formatCount } from "./format-count.ts";
import type { Violation } from "./violation.ts";

/**
 * Objects, arrays and scalars count, including the payload itself. A parsed value takes hundreds of bytes where its
 * text takes three: 64 KiB of `[{},{},…]` are 1.3 MB in JavaScript, and as much again in PostgreSQL.
 */
export const maxJsonValues = 2_000;

export const tooManyValues: Violation = {
  message:
    `Must contain at most ${formatCount(maxJsonValues)} JSON values, counting the payload itself and ` +
    "each object, array, string, number, true, false and null in it. Leave out what the booking does not " +
    "need, or send long lists as strings.",
  code: "too-many-values",
  propertyPath: [],
};

/**
 * Counts the JSON values in a value, including the value itself. Counting stops above `maxJsonValues`, so a larger
 * result only means that there are too many.
 *
 * @param value the parsed value
 */
export function countJsonValues(value: unknown): number {
  let count = 1;
  const containers: unknown[] = [value];
  while (containers.length > 0 && count <= maxJsonValues) {
    const container = containers.pop();
    if (typeof container !== "object" || container === null || container instanceof ExactNumber) continue;
    const items: unknown[] = Array.isArray(container) ? container : Object.values(container);
    count += items.length;
    for (const item of items) if (typeof item === "object") containers.push(item);
  }
  return count;
}
