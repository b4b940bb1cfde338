import { Refusal } from "@booking-events/http";
import {
  type Answer,
  answers,
  bookingFields,
  type Charset,
  decodeText,
  decodeUtf8,
  type FieldWarning,
  JsonError,
  parseJson,
  readJsonObject,
  replaceUnstorableText,
  requestWarnings,
} from "@booking-events/schema";
import type { ContentType } from "./content-type.ts";
import { formToJson } from "./form-to-json.ts";

/** The content of a body before validation. It may have an own property named `__proto__`. */
export type BodyObject = Record<string, unknown>;

export interface DecodedBody {
  object: BodyObject;
  /** What `JSON.stringify` returns for the object, if it is known; only names that are integers may have another place. */
  json?: string;
  /** What the sender should know about how the body was read. */
  warnings: readonly FieldWarning[];
}

const noWarnings: readonly FieldWarning[] = [];

/**
 * Decodes a body as one object. A body that looks like a JSON object is read as one, unless another type is declared that
 * we read.
 *
 * @returns an empty object for an empty body
 * @throws Refusal where a lenient parser would guess
 */
export function decodeBody(bytes: Uint8Array, { format, charset }: ContentType): DecodedBody {
  if (bytes.length === 0) return { object: {}, warnings: noWarnings };
  const utf8 = skipByteOrderMark(charset === undefined || charset === "utf-8" ? bytes : toUtf8(bytes, charset));
  if (utf8.length === 0) return { object: {}, warnings: noWarnings };
  if (format === "json") return decodeJson(utf8);
  if (beginsObject(utf8)) {
    // A form may begin with white space, but not with a brace: that is JSON with a mistake.
    const isPerhapsForm = format === "form" && utf8[0] !== openingBrace;
    const decoded = decodeUndeclaredJson(utf8, isPerhapsForm);
    if (decoded !== undefined) return decoded;
  }
  if (format === "unknown") throw new Refusal(answers.unsupportedType);
  return decodeForm(charset === "windows-1252" ? toUtf8Escapes(utf8) : utf8);
}

/** @throws Refusal if the bytes are not of the charset */
function toUtf8(bytes: Uint8Array, charset: Charset): Uint8Array {
  const text = decodeText(bytes, charset);
  if (text === undefined) throw new Refusal(answers.invalidUtf16);
  return Buffer.from(text);
}

/**
 * Windows programs often write a byte order mark, which RFC 8259 allows us to ignore. It would otherwise make JSON
 * malformed and become part of the first form field's name.
 */
function skipByteOrderMark(bytes: Uint8Array): Uint8Array {
  return beginsWithMark(bytes) ? bytes.subarray(3) : bytes;
}

function beginsWithMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

const openingBrace = 0x7b;
/** What JSON allows around values. */
const whiteSpace: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

function beginsObject(bytes: Uint8Array): boolean {
  let at = 0;
  while (whiteSpace.has(bytes[at])) at += 1;
  return bytes[at] === openingBrace;
}

function decodeJson(bytes: Uint8Array): DecodedBody {
  try {
    return readJson(bytes);
  } catch (error) {
    if (error instanceof JsonError) throw new Refusal(describeJsonError(error));
    throw error;
  }
}

/**
 * The most common mistake is `curl -d '{…}'` without a header, and browsers send a text as text/plain.
 *
 * @returns undefined: it is malformed JSON, and perhaps a form
 */
function decodeUndeclaredJson(bytes: Uint8Array, isPerhapsForm: boolean): DecodedBody | undefined {
  try {
    const { warnings, ...decoded } = readJson(bytes);
    return { ...decoded, warnings: [requestWarnings["wrong-content-type"], ...warnings] };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    if (isPerhapsForm && error.kind === "malformed") return undefined;
    throw new Refusal(error.kind === "malformed" ? answers.wrongContentType(error) : describeJsonError(error));
  }
}

/** @throws Refusal, JsonError */
function readJson(bytes: Uint8Array): DecodedBody {
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new Refusal(answers.invalidUtf8);
  const { object, isCompact } = readJsonObject(text);
  if (isCompact) return { object, json: text, warnings: noWarnings };
  // JSON from well-formed UTF-8 can express what can't be stored by this escape only.
  return text.includes("\\u") ? makeStorable(object) : { object, warnings: noWarnings };
}

export function describeJsonError(error: Pick<JsonError, "kind" | "line" | "column">): Answer {
  switch (error.kind) {
    case "malformed":
      return answers.malformedJson(error);
    case "repeated-key":
      return answers.repeatedJsonKey(error);
    case "not-an-object":
      return answers.notAnObject;
  }
}

/** @throws Refusal */
export function makeStorable(object: BodyObject): DecodedBody {
  const { warnings, hasEqualNames } = replaceUnstorableText(object);
  if (hasEqualNames) throw new Refusal(answers.equalNames);
  return { object, warnings };
}

/**
 * Decodes application/x-www-form-urlencoded as a flat list of fields. Dots and brackets in a name are ordinary
 * characters. Only the size of the body limits the number of fields.
 */
function decodeForm(bytes: Uint8Array): DecodedBody {
  if (beginsWithMark(bytes)) throw new Refusal(answers.repeatedByteOrderMark);
  const { json, names = 0 } = formToJson(bytes) ?? {};
  if (json === undefined) throw new Refusal(answers.invalidUtf8);
  const parsed = parseJson(json) as BodyObject;
  // There are fewer if one appears twice.
  const isComplete = Object.keys(parsed).length === names;
  const object = isComplete ? parsed : gatherFields(bytes);
  if (json.includes("\\u0000")) return makeStorable(object);
  return isComplete ? { object, json, warnings: noWarnings } : { object, warnings: noWarnings };
}

const ownField = { configurable: true, enumerable: true, writable: true };
const listedNames: ReadonlySet<string> = new Set(bookingFields.map(({ name }) => name));

/** A name that appears more than once becomes an array of its values, unless it is a listed one. */
function gatherFields(form: Uint8Array): BodyObject {
  const fields: BodyObject = {};
  const texts = JSON.parse(formToJson(form, { asList: true })?.json ?? "[]") as string[];
  for (let at = 0; at < texts.length; at += 2) {
    const [name = "", value = ""] = [texts[at], texts[at + 1]];
    const known = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (known !== undefined && listedNames.has(name)) throw new Refusal(answers.repeatedFormField);
    if (Array.isArray(known)) known.push(value);
    else if (known !== undefined) fields[name] = [known, value];
    // `__proto__` is an ordinary field, as in JSON.parse. An assignment would set the prototype.
    else if (name === "__proto__") Object.defineProperty(fields, name, { ...ownField, value });
    else fields[name] = value;
  }
  return fields;
}

/**
 * A form's escapes are bytes of the charset of its page, as browsers write them, so `%E9` is é in windows-1252. (The
 * escapes of a form in UTF-16 are UTF-8, as the URL standard says.)
 */
function toUtf8Escapes(form: Uint8Array): Uint8Array {
  const text = Buffer.from(form).toString("latin1");
  return Buffer.from(
    text.replace(/%[89A-Fa-f][0-9A-Fa-f]/g, (byte) => utf8Escapes[Number.parseInt(byte.slice(1), 16)] ?? byte),
    "latin1",
  );
}

/** The escapes in UTF-8 of each byte's character in windows-1252. */
const utf8Escapes = Array.from(
  decodeText(
    Uint8Array.from({ length: 256 }, (_, byte) => byte),
    "windows-1252",
  ) ?? "",
  encodeURIComponent,
);
