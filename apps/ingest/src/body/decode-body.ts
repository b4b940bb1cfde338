import { Refusal } from "@booking-events/http";
import {
  type Answer,
  answers,
  decodeFormFields,
  decodeUtf8,
  JsonError,
  maxJsonValues,
  parseJson,
  readJsonObject,
} from "@booking-events/schema";
import { formToJson } from "./form-to-json.ts";

/** The content of a body before validation. It may have an own property named `__proto__`. */
export type BodyObject = Record<string, unknown>;

export interface DecodedBody {
  object: BodyObject;
  /**
   * What `JSON.stringify` returns for the object, if it is known; only names that are integers may have another place. It
   * has no escape `\u`, and comes from well-formed UTF-8.
   */
  json?: string;
}

const byteOrderMark = "\ufeff";

/**
 * Skips a byte order mark at the start, as RFC 8259 allows. Windows programs often write one, which would otherwise
 * make JSON malformed and become part of the first form field's name.
 *
 * @throws Refusal if the bytes are not UTF-8
 */
function decodeText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new Refusal(answers.invalidUtf8);
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

/**
 * Decodes a JSON object. A number that loses digits as a double becomes NaN, which the payload's rules refuse.
 *
 * @returns an empty object for an empty body
 * @throws Refusal unless the body is one JSON object without duplicate keys at any level
 */
export function decodeJson(bytes: Uint8Array): DecodedBody {
  const text = decodeText(bytes);
  // A body that was only a byte order mark counts as empty too.
  if (text === "") return { object: {} };
  try {
    const { object, isCompact } = readJsonObject(text);
    return isCompact ? { object, json: text } : { object };
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
 * Decodes application/x-www-form-urlencoded as a flat list of fields. A dot in a name is an ordinary character, and
 * each name may appear only once. Only the size of the body limits the number of fields.
 *
 * @returns an empty object for an empty body
 * @throws Refusal where a lenient parser would guess
 */
export function decodeForm(bytes: Uint8Array): DecodedBody {
  const { json, names = 0 } = formToJson(bytes) ?? {};
  // A form with more names is refused, so it should not be decoded twice.
  if (json !== undefined && names < maxJsonValues) {
    const object = parseJson(json) as BodyObject;
    // There are fewer if one appears twice.
    if (Object.keys(object).length === names) return { object, json };
  }
  return { object: decodeUnusualForm(decodeText(bytes)) };
}

function decodeUnusualForm(text: string): BodyObject {
  // The most common mistake is `curl -d '{…}'` without a header. The errors would otherwise be about fields that nobody
  // sent.
  if (/^[{[]/.test(text)) throw new Refusal(answers.jsonSentAsForm);
  if (text.startsWith(byteOrderMark)) throw new Refusal(answers.repeatedByteOrderMark);
  const decoded = decodeFormFields(text);
  if (decoded === undefined) throw new Refusal(answers.malformedForm);
  const fields: BodyObject = {};
  for (const [name, value] of decoded) {
    if (/[[\]]/.test(name)) throw new Refusal(answers.nestedFormField);
    if (Object.hasOwn(fields, name)) throw new Refusal(answers.repeatedFormField);
    // `__proto__` is an ordinary field, as in JSON.parse. An assignment would set the prototype.
    if (name === "__proto__") Object.defineProperty(fields, name, { ...ownField, value });
    else fields[name] = value;
  }
  return fields;
}
