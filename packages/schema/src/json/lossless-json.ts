import { mayHaveInexactNumber } from "./parse-json.ts";

/**
 * Returns true only if the object certainly contains everything in the text, without a duplicate key or a rounded
 * number. `JSON.parse` reports neither. False means that only an exact parser can tell.
 *
 * @param object the result of `JSON.parse` for the text
 */
export function isLossless(text: string, object: Readonly<Record<string, unknown>>): boolean {
  const compactLength = lengthOfCompactJson(object);
  // The sum of lengths takes less than 2 % of the cost of decoding and checking the payload. The other proof takes ten
  // times as long.
  const hasNoRoomForAnotherField = compactLength !== undefined && text.length - compactLength < shortestField;
  return hasNoRoomForAnotherField || hasEveryString(text, object);
}

/**
 * Returns true only if the text is what `JSON.stringify` returns for the object, except that names that are integers may
 * have another place. Nearly all payloads that programs send are such text.
 *
 * @param text without unpaired surrogates
 * @param object the result of `JSON.parse` for the text
 */
export function isCompactJson(text: string, object: Readonly<Record<string, unknown>>): boolean {
  return text.length === lengthOfCompactJson(object);
}

/** The minimum length of another field, in characters: `"":0,`. */
const shortestField = 5;

/**
 * Returns the length of the shortest JSON text for a flat object of strings and nulls, without white space and escapes.
 * Returns undefined for other objects.
 */
function lengthOfCompactJson(object: Readonly<Record<string, unknown>>): number | undefined {
  // The braces count 2, and the last field has no comma. Every character of a value takes at least one character in the
  // text.
  let length = 1;
  for (const name in object) {
    const value = object[name];
    if (typeof value === "string") length += `"":"",`.length + name.length + value.length;
    else if (value === null) length += `"":null,`.length + name.length;
    else return undefined;
  }
  return length;
}

/** A duplicate key is a string in the text that the object does not have. Each string has two quotation marks. */
function hasEveryString(text: string, object: object): boolean {
  const { strings, hasNumber } = countStrings(object);
  return countQuotationMarks(text) === 2 * strings && !(hasNumber && mayHaveInexactNumber(text));
}

function countStrings(object: object): { strings: number; hasNumber: boolean } {
  let strings = 0;
  let hasNumber = false;
  const containers: object[] = [object];
  for (let container = containers.pop(); container !== undefined; container = containers.pop()) {
    const values: unknown[] = Object.values(container);
    if (!Array.isArray(container)) strings += values.length;
    for (const value of values) {
      if (typeof value === "string") strings += 1;
      else if (typeof value === "number") hasNumber = true;
      else if (typeof value === "object" && value !== null) containers.push(value);
    }
  }
  return { strings, hasNumber };
}

function countQuotationMarks(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) count += 1;
  return count;
}
