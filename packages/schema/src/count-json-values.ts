import type { Violation } from "./violation.ts";

/**
 * Objects, arrays and scalars count, the payload itself as the first. Parsed, a value takes hundreds of bytes where its
 * text takes three: 64 KiB of `[{},{},…]` are 1.3 MB in JavaScript, and as much again in PostgreSQL.
 */
export const maxJsonValues = 2_000;

export const tooManyValues: Violation = {
  message: `Must hold at most ${maxJsonValues.toLocaleString("en")} values: the payload itself, and each object, array, string, number, true, false and null inside it. Leave out what the booking does not need, or send long lists as a string.`,
  propertyPath: [],
};

/**
 * How many values of JSON there are in one: itself, and all that are inside it. Counting ends above `maxJsonValues`; the
 * result then only says that there are too many.
 *
 * @param value what was sent, already parsed
 */
export function countJsonValues(value: unknown): number {
  let count = 1;
  const containers = [value].filter(isContainer);
  for (let container = containers.pop(); container !== undefined; container = containers.pop()) {
    const items: unknown[] = Object.values(container);
    count += items.length;
    if (count > maxJsonValues) break;
    containers.push(...items.filter(isContainer));
  }
  return count;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
