import { decodeUtf8 } from "@booking-events/schema";

const codeOf = (character: string) => character.charCodeAt(0);
const space = codeOf(" ");
const quote = codeOf('"');
const percent = codeOf("%");
const ampersand = codeOf("&");
const plus = codeOf("+");
const comma = codeOf(",");
const colon = codeOf(":");
const equals = codeOf("=");
const openingBracket = codeOf("[");
const backslash = codeOf("\\");
const closingBracket = codeOf("]");
const openingBrace = codeOf("{");
const closingBrace = codeOf("}");
const lineFeed = codeOf("\n");
const carriageReturn = codeOf("\r");

/** The value of each byte as a hexadecimal digit, or -1. */
const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** How `JSON.stringify` writes the bytes that it escapes. */
const escapes = new Map(
  [...Array(space).keys(), quote, backslash].map((byte) => {
    const written = JSON.stringify(String.fromCharCode(byte)).slice(1, -1);
    return [byte, Array.from(written, codeOf)];
  }),
);
/** The most bytes that one byte of a form becomes, such as U+0000, or the ampersand after a name without a value. */
const maxGrowth = 6;

/** Holds a text while it is written. It grows to the longest one. */
let buffer = new Uint8Array(4_096);

/**
 * Rewrites a form as JSON: each name and its value become two strings, as `JSON.stringify` writes them. A name may appear
 * twice in the text. As in the WHATWG URL standard, an empty pair is not a field, and a percent sign that begins no escape
 * stands for itself. Line breaks at the end are left out.
 *
 * V8 makes a slow hash table of an object to which many fields are added one by one, but not of one that it parses. So
 * for a booking, this and the parsing take less time than adding the fields, and the event's JSON costs nothing.
 *
 * @param options.asList whether to write an array of names and values in turn instead of an object
 * @returns the text and the number of names in it; undefined: the form is not UTF-8
 */
export function formToJson(form: Uint8Array, { asList = false } = {}): { json: string; names: number } | undefined {
  const end = lengthWithoutLineBreaks(form);
  if (buffer.length < maxGrowth * end + 4) buffer = new Uint8Array(maxGrowth * end + 4);
  const json = buffer;
  const separator = asList ? comma : colon;
  let length = 0;
  let names = 0;
  let isName = true;
  json[length++] = asList ? openingBracket : openingBrace;
  json[length++] = quote;
  let nameAt = length;
  for (let at = 0; at < end; at += 1) {
    let byte = form[at] ?? 0;
    if (isName && (byte === equals || (byte === ampersand && length > nameAt))) {
      length = writeBetween(json, length, separator);
      names += 1;
      isName = false;
      if (byte === equals) continue;
    }
    if (byte === ampersand) {
      // An empty pair.
      if (isName) continue;
      length = writeBetween(json, length, comma);
      isName = true;
      nameAt = length;
      continue;
    }
    if (byte === plus) byte = space;
    else if (byte === percent) {
      const value = ((digits[form[at + 1] ?? 0] ?? -1) << 4) | (digits[form[at + 2] ?? 0] ?? -1);
      if (value >= 0) {
        byte = value;
        at += 2;
      }
    }
    if (byte < space || byte === quote || byte === backslash) {
      for (const escaped of escapes.get(byte) ?? []) json[length++] = escaped;
    } else json[length++] = byte;
  }
  if (isName && length > nameAt) {
    length = writeBetween(json, length, separator);
    names += 1;
    isName = false;
  }
  // After the last pair, another one was begun: `,"`. In an empty form, it was the first: `"`.
  if (isName) length -= names === 0 ? 1 : 2;
  else json[length++] = quote;
  json[length++] = asList ? closingBracket : closingBrace;
  const text = decodeUtf8(json.subarray(0, length));
  return text === undefined ? undefined : { json: text, names };
}

/** Ends one string and begins the next one. */
function writeBetween(json: Uint8Array, length: number, separator: number): number {
  json[length] = quote;
  json[length + 1] = separator;
  json[length + 2] = quote;
  return length + 3;
}

/** A line break after the last value comes from a text file or editor, and is no part of the value. */
function lengthWithoutLineBreaks(form: Uint8Array): number {
  let { length } = form;
  while (length > 0 && (form[length - 1] === lineFeed || form[length - 1] === carriageReturn)) length -= 1;
  return length;
}
