import { Refusal } from "@booking-events/http";
import { type Answer, answers, JsonError, parseJsonObject } from "@booking-events/schema";

/** The content of a body before validation. It may have an own property named `__proto__`. */
export type BodyObject = Record<string, unknown>;

const byteOrderMark = "\ufeff";

/**
 * Skips a byte order mark at the start, as RFC 8259 allows. Windows programs often write one, which would otherwise
 * make JSON malformed and become part of the first form field's name.
 */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * @throws Refusal if the bytes are not UTF-8. Replacement characters would be stored as if the partner had sent them
 */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Refusal(answers.invalidUtf8);
  }
}

/**
 * Decodes a JSON object. A number that loses digits as a double becomes NaN, which the payload's rules refuse.
 *
 * @throws Refusal unless the text is one JSON object without duplicate keys at any level
 */
export function decodeJson(text: string): BodyObject {
  try {
    return parseJsonObject(text);
  } catch (error) {
    if (error instanceof JsonError) throw new Refusal(describeJsonError(error));
    throw error;
  }
}

function describeJsonError(error: JsonError): Answer {
  switch (error.kind) {
    case "malformed":
      return answers.malformedJson(error);
    case "repeated-key":
      return answers.repeatedJsonKey(error);
    case "not-an-object":
      return answers.notAnObject;
  }
}

const ownField = { configurable: true, enumerable: true, writable: true };

/**
 * Fields are written one by one, so V8 makes a hash table of more than about 16, which validation and JSON.stringify read
 * several times as slowly. It lays out a copy like an object from JSON.parse. With some hundreds of fields, copying takes
 * longer than it saves.
 */
const maxCopiedFields = 64;

/**
 * Decodes application/x-www-form-urlencoded as a flat list of fields. A dot in a name is an ordinary character, and
 * each name may appear only once. Only the size of the body limits the number of fields.
 *
 * @throws Refusal where a lenient parser would guess
 */
export function decodeForm(text: string): BodyObject {
  // The most common mistake is `curl -d '{…}'` without a header. The errors would otherwise be about fields that nobody
  // sent.
  if (/^[{[]/.test(text)) throw new Refusal(answers.jsonSentAsForm);
  if (text.startsWith(byteOrderMark)) throw new Refusal(answers.repeatedByteOrderMark);
  const fields: BodyObject = {};
  // Decoding everything at once is cheaper, but would turn an encoded separator into a real one.
  const isDecodedAtOnce = !/%(?:26|3d)/i.test(text);
  const source = isDecodedAtOnce ? decodeFormText(text) : text;
  const decode = isDecodedAtOnce ? (decoded: string) => decoded : decodeFormText;
  const pairs = source.split("&");
  for (const pair of pairs) {
    // As in the WHATWG URL standard, an empty pair is not a field.
    if (pair === "") continue;
    const equalsAt = pair.indexOf("=");
    const name = decode(equalsAt === -1 ? pair : pair.slice(0, equalsAt));
    if (/[[\]]/.test(name)) throw new Refusal(answers.nestedFormField);
    if (Object.hasOwn(fields, name)) throw new Refusal(answers.repeatedFormField);
    const value = equalsAt === -1 ? "" : decode(pair.slice(equalsAt + 1));
    // `__proto__` is an ordinary field, as in JSON.parse. An assignment would set the prototype.
    if (name === "__proto__") Object.defineProperty(fields, name, { ...ownField, value });
    else fields[name] = value;
  }
  return pairs.length <= maxCopiedFields ? { ...fields } : fields;
}

function decodeFormText(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  // Most names and many values need no decoding, and checking that is cheaper than decoding.
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    throw new Refusal(answers.malformedFormEscape);
  }
}
