/**
 * Returns true only if the object certainly contains everything in the text, without a duplicate key or a rounded
 * number. `JSON.parse` reports neither. False means that only an exact parser can tell.
 *
 * @param object the result of `JSON.parse` for the text
 */
export function isLossless(text: string, object: Readonly<Record<string, unknown>>): boolean {
  return hasNoRoomForAnotherField(text, object) || hasEveryString(text, object);
}

/** The minimum length of another field, in characters: `"":0,`. */
const shortestField = 5;

/**
 * A proof for flat objects of strings without white space: it adds up lengths, at less than 2 % of the cost of decoding
 * and checking the payload. The other proof takes ten times as long.
 */
function hasNoRoomForAnotherField(text: string, object: Readonly<Record<string, unknown>>): boolean {
  // The braces count 2, and the last field has no comma. Every character of a value takes at least one character in the
  // text.
  let shortestText = 1;
  for (const name in object) {
    const value = object[name];
    if (typeof value === "string") shortestText += `"":"",`.length + name.length + value.length;
    else if (value === null) shortestText += `"":null,`.length + name.length;
    else return false;
  }
  return text.length - shortestText < shortestField;
}

/** A duplicate key is a string in the text that the object does not have. Each string has two quotation marks. */
function hasEveryString(text: string, object: object): boolean {
  const { strings, hasNumber } = countStrings(object);
  return countQuotationMarks(text) === 2 * strings && !(hasNumber && possiblyInexactNumber.test(text));
}

/**
 * Matches an exponent, or more than the 15 digits that a double always keeps. The match may also be inside a string.
 */
const possiblyInexactNumber = /[0-9.]{16}|[0-9][eE]/;

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
