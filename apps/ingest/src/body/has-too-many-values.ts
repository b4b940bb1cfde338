import { maxJsonValues } from "@booking-events/schema";

const codeOf = (character: string) => character.charCodeAt(0);
const quote = codeOf('"');
const backslash = codeOf("\\");
const comma = codeOf(",");
const openingBracket = codeOf("[");
const openingBrace = codeOf("{");

/** In bytes, on average. The shortest values are those of `[0,0]`. */
const shortestValue = 2;

/**
 * Returns true only if a text has more JSON values than a payload may have, or is no JSON. To count takes a hundredth of
 * the time of building an object with thousands of names, which V8 keeps in a slow hash table. False says nothing.
 */
export function hasTooManyValues(json: Uint8Array): boolean {
  if (json.length < shortestValue * maxJsonValues) return false;
  // A container with commas has one more value than commas, and is one itself.
  let commas = 0;
  let containers = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) at = endOfText(json, at);
    else if (byte === comma) commas += 1;
    else if (byte === openingBrace || byte === openingBracket) containers += 1;
    if (commas >= maxJsonValues - 1 || containers > maxJsonValues) return true;
  }
  return false;
}

/** @returns the place of the quotation mark that ends the text, or the length of the JSON if there is none */
function endOfText(json: Uint8Array, start: number): number {
  let end = json.indexOf(quote, start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf(quote, end + 1);
  return end === -1 ? json.length : end;
}

/** Whether an odd number of backslashes comes before. */
function isEscaped(json: Uint8Array, at: number): boolean {
  let start = at;
  while (json[start - 1] === backslash) start -= 1;
  return (at - start) % 2 === 1;
}
