import {
  invalidUtf8,
  jsonSentAsForm,
  malformedFormEscape,
  malformedJson,
  nestedFormField,
  notAnObject,
  Refusal,
  repeatedByteOrderMark,
  repeatedFormField,
  repeatedJsonKey,
} from "../http/answers.ts";
import { isKeptWhole } from "./kept-whole.ts";
import { JsonFault, parseJsonExactly } from "./parse-json-exactly.ts";

/** What a body holds, before validation. `__proto__` may be one of its own keys. */
export type BodyObject = Record<string, unknown>;

const byteOrderMark = "\ufeff";

/**
 * A byte order mark at the start is left out, as RFC 8259 allows: Windows software likes to write one, and it would
 * otherwise make JSON malformed and rename the first form field.
 */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** @throws Refusal if the bytes are not UTF-8: replacement characters would be stored as if the partner had sent them. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Refusal(invalidUtf8);
  }
}

/**
 * A number that a double does not hold as it is written is NaN in the object, so that the payload's rules refuse it.
 *
 * @throws Refusal unless the text is one JSON object, in which no object has a key twice
 */
export function decodeJson(text: string): BodyObject {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refusal(notAnObject);
  const object = value as BodyObject;
  return isKeptWhole(text, object) ? object : (tellFault(() => parseJsonExactly(text)) as BodyObject);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // V8's message quotes the body, and does not always say where.
    return tellFault(() => parseJsonExactly(text));
  }
}

function tellFault<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new Refusal(error.kind === "malformed" ? malformedJson(error) : repeatedJsonKey(error));
  }
}

const ownField = { configurable: true, enumerable: true, writable: true };

/**
 * Decodes application/x-www-form-urlencoded as one flat list: a dot in a name is a plain character, and each name
 * may appear once. Every field counts; only the body's size limits their number.
 *
 * @throws Refusal where a lenient parser would guess
 */
export function decodeForm(text: string): BodyObject {
  // The commonest mistake: curl -d '{…}' without a header. Its error would be about a field that nobody has sent.
  if (/^[{[]/.test(text)) throw new Refusal(jsonSentAsForm);
  if (text.startsWith(byteOrderMark)) throw new Refusal(repeatedByteOrderMark);
  const fields: BodyObject = {};
  for (const pair of text.split("&")) {
    // Nothing between two ampersands, or after the last, is no field, as in the WHATWG URL standard.
    if (pair === "") continue;
    const equalsAt = pair.indexOf("=");
    const name = decodeFormText(equalsAt === -1 ? pair : pair.slice(0, equalsAt));
    if (/[[\]]/.test(name)) throw new Refusal(nestedFormField);
    if (Object.hasOwn(fields, name)) throw new Refusal(repeatedFormField);
    const value = equalsAt === -1 ? "" : decodeFormText(pair.slice(equalsAt + 1));
    // A field like any other, as in JSON.parse; an assignment would set the prototype.
    if (name === "__proto__") Object.defineProperty(fields, name, { ...ownField, value });
    else fields[name] = value;
  }
  return fields;
}

function decodeFormText(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  // Most names and many values have nothing to decode, and finding that out is cheaper than decoding.
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    throw new Refusal(malformedFormEscape);
  }
}
