import { countDigits, ExactNumber, isJsonNumber } from "../json/exact-number.ts";
import { isStorableText, unstorableNameMessage, unstorableTextMessage } from "./storable-text.ts";
import type { Violation } from "./violation.ts";

/**
 * Far more than partners may send, and far less than the stacks of PostgreSQL and Node allow. An accepted value is
 * therefore never refused for its depth, whatever limit a release has for partners.
 */
const maxStorableLevels = 500;

/**
 * What PostgreSQL's numeric holds before and after the point
 * (https://www.postgresql.org/docs/current/datatype-numeric.html).
 */
const maxStorableDigits = { before: 131_072, after: 16_383 };

/**
 * Returns the first part of the value that a database could not store unchanged, or null if there is none.
 *
 * @param value parsed JSON
 * @param options.hasStorableTexts whether no text in the value has U+0000 or half of a surrogate pair
 */
export function findUnstorable(value: unknown, { hasStorableTexts = false } = {}): Violation | null {
  return findBelow(value, hasStorableTexts ? () => true : isStorableText, 0);
}

function findBelow(value: unknown, isStorable: (text: string) => boolean, level: number): Violation | null {
  if (typeof value === "string")
    return isStorable(value) ? null : { message: unstorableTextMessage, code: "unstorable", propertyPath: [] };
  if (typeof value === "number" || value instanceof ExactNumber) return findUnstorableDigits(value);
  if (typeof value !== "object" || value === null) return null;
  if (level >= maxStorableLevels)
    return { message: `Must be nested at most ${maxStorableLevels} levels deep.`, code: "too-deep", propertyPath: [] };
  for (const name in value) {
    const found = isStorable(name)
      ? findBelow((value as Record<string, unknown>)[name], isStorable, level + 1)
      : { message: unstorableNameMessage, code: "unstorable" as const, propertyPath: [] };
    if (found !== null) return { ...found, propertyPath: [name, ...found.propertyPath] };
  }
  return null;
}

function findUnstorableDigits(value: number | ExactNumber): Violation | null {
  if (!isJsonNumber(value)) return { message: "Must be a finite number.", code: "not-json", propertyPath: [] };
  if (typeof value === "number") return null;
  const { before, after } = countDigits(value);
  if (before <= maxStorableDigits.before && after <= maxStorableDigits.after) return null;
  return { message: "Must be a number that a database can store.", code: "too-many-digits", propertyPath: [] };
}
