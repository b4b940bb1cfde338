import { parseJsonSlowly } from "./parse-json-exactly.ts";

/**
 * Parses like `JSON.parse`, but a number that a double would change becomes an `ExactNumber`, and names are always right.
 * V8 up to at least 14.6, and so Node 24 and 26, may read an escaped name as one of an earlier text: after
 * `{"a":0,"\\":0}`, it reads `{"a":0,"\n":0}` as `{"a":0,"\\":0}`. So one sender's names would change another's. See
 * https://github.com/nodejs/node/issues/63785.
 *
 * A text that may have such a number or name takes several times as long.
 *
 * @param options.numbersOf returns the part of the value whose numbers must be exact. Default: the value itself
 * @throws SyntaxError | JsonError
 */
export function parseJson(
  text: string,
  { numbersOf = (value) => value }: { numbersOf?: (value: unknown) => unknown } = {},
): unknown {
  if (mayHaveEscapedName(text)) return parseJsonSlowly(text);
  const value: unknown = JSON.parse(text);
  return hasNumber(numbersOf(value)) && mayHaveInexactNumber(text) ? parseJsonSlowly(text) : value;
}

/** Most payloads have no number, and looking for one in them takes less time than reading their text. */
function hasNumber(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return typeof value === "number";
  const containers: object[] = [value];
  for (let container = containers.pop(); container !== undefined; container = containers.pop()) {
    // An array of the values would take twice as long.
    for (const name in container) {
      const item: unknown = (container as Record<string, unknown>)[name];
      if (typeof item === "number") return true;
      if (typeof item === "object" && item !== null) containers.push(item);
    }
  }
  return false;
}

/** Returns false only if no name in a JSON text has an escape. */
export function mayHaveEscapedName(text: string): boolean {
  return text.includes("\\") && escapeBeforeColon.test(text);
}

/** Matches the last escape in a name, and the rest of the name. It may also match inside a value. */
const escapeBeforeColon = /\\"?[^"\\]*"[ \t\n\r]*:/;

/** Returns false only if a double holds every number in a JSON text. */
export function mayHaveInexactNumber(text: string): boolean {
  return possiblyInexactNumber.test(text);
}

/**
 * Matches numbers with an exponent or with more digits than a double always keeps: 15, or 16 in a whole number up to
 * 9·10^15. It may also match inside a text.
 */
const possiblyInexactNumber = /(?:^|[:,[])[ \t\n\r]*-?(?:[0-9.]{17}|9[0-9]{15}|[0-9.]+[eE])/;
