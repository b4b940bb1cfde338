import { parseJsonSlowly } from "./parse-json-exactly.ts";

/**
 * Parses like `JSON.parse`, but always with the right names. V8 up to at least 14.6, and so Node 24 and 26, may read an
 * escaped name as one of an earlier text: after `{"a":0,"\\":0}`, it reads `{"a":0,"\n":0}` as `{"a":0,"\\":0}`. So one
 * sender's names would change another's. See https://github.com/nodejs/node/issues/63785.
 *
 * A text that may have an escaped name takes several times as long.
 *
 * @throws SyntaxError | JsonError
 */
export function parseJson(text: string): unknown {
  return mayHaveEscapedName(text) ? parseJsonSlowly(text) : JSON.parse(text);
}

/** Returns false only if no name in a JSON text has an escape. */
export function mayHaveEscapedName(text: string): boolean {
  return text.includes("\\") && escapeBeforeColon.test(text);
}

/** Matches the last escape in a name, and the rest of the name. It may also match inside a value. */
const escapeBeforeColon = /\\"?[^"\\]*"[ \t\n\r]*:/;
