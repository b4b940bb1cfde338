import {
  invalidUtf8,
  malformedFormEscape,
  malformedJson,
  nestedFormField,
  notAnObject,
  Refusal,
  repeatedFormField,
} from "./answers.ts";

/** What a body holds, before validation. `__proto__` may be one of its own keys. */
export type BodyObject = Record<string, unknown>;

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

/** @throws Refusal unless the text is one JSON object */
export function decodeJson(text: string): BodyObject {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refusal(notAnObject);
  return value as BodyObject;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Without the cause: V8's message quotes the body.
    throw new Refusal(malformedJson);
  }
}

const ownField = { configurable: true, enumerable: true, writable: true };

/**
 * Decodes application/x-www-form-urlencoded as one flat list: a dot in a name is a plain character, and each name
 * stands there once. Every field counts; only the body's size limits their number.
 *
 * @throws Refusal where a lenient parser would guess
 */
export function decodeForm(text: string): BodyObject {
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
