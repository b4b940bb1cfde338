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
const firstOfByteOrderMark = 0xef;

/** The value of each byte as a hexadecimal digit, or -1. */
const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** What `JSON.stringify` writes after the backslash, for the characters that it escapes and that forms really have. */
const escapes = new Map(
  ['"', "\\", "\t", "\n", "\r"].map((character) => [codeOf(character), JSON.stringify(character).charCodeAt(2)]),
);

/** Holds a text while it is written. It grows to the longest one. */
let buffer = new Uint8Array(4_096);

/**
 * Rewrites an ordinary form as JSON: each name and its value become two strings, as `JSON.stringify` writes them. Returns
 * undefined for any other form, such as one that is malformed or must be refused. It does not notice names that appear
 * twice.
 *
 * V8 makes a slow hash table of an object to which many fields are added one by one, but not of one that it parses. So
 * for a booking, this and the parsing take less time than adding the fields, and the event's JSON costs nothing.
 *
 * @returns the text, which has no escape `\u`, and the number of names in it
 */
export function formToJson(form: Uint8Array): { json: string; names: number } | undefined {
  // This is JSON that was sent as a form, or a text that may begin with a byte order mark.
  if (form[0] === openingBrace || form[0] === firstOfByteOrderMark) return undefined;
  // An equals sign or ampersand becomes three bytes.
  if (buffer.length < 3 * form.length + 4) buffer = new Uint8Array(3 * form.length + 4);
  const json = buffer;
  let length = 0;
  let names = 0;
  let isName = true;
  json[length++] = openingBrace;
  json[length++] = quote;
  for (let at = 0; at < form.length; at += 1) {
    let byte = form[at] ?? 0;
    if (byte === ampersand || (byte === equals && isName)) {
      if (byte === ampersand && isName) return undefined;
      json[length++] = quote;
      json[length++] = isName ? colon : comma;
      json[length++] = quote;
      if (isName) names += 1;
      isName = !isName;
      continue;
    }
    if (byte === plus) byte = space;
    else if (byte === percent) {
      byte = ((digits[form[at + 1] ?? 0] ?? -1) << 4) | (digits[form[at + 2] ?? 0] ?? -1);
      at += 2;
    }
    if (isName && (byte === openingBracket || byte === closingBracket)) return undefined;
    if (byte < space || byte === quote || byte === backslash) {
      const letter = escapes.get(byte);
      if (letter === undefined) return undefined;
      json[length++] = backslash;
      byte = letter;
    }
    json[length++] = byte;
  }
  if (isName) return undefined;
  json[length++] = quote;
  json[length++] = closingBrace;
  const text = decodeUtf8(json.subarray(0, length));
  return text === undefined ? undefined : { json: text, names };
}
