import type { IncomingHttpHeaders } from "node:http";
import {
  type Answer,
  answers,
  bookingFields,
  bookingReferenceOf,
  decodeFormFields,
  type EventKind,
  eventKinds,
  type FieldWarning,
  findWarnings,
  isIdempotencyKey,
  JsonError,
  parseJsonObject,
  referenceKindOf,
  replaceUnstorableText,
  requestWarnings,
  toCanonicalJson,
  type Violation,
  validatePayload,
} from "@booking-events/schema";

export interface SentEvent {
  kind: EventKind;
  /** Names the booking. */
  booking: string;
  /** The payload as canonical JSON. */
  content: string;
  /** Undefined if the sender sent none. */
  key: string | undefined;
  warnings: readonly FieldWarning[];
}

export interface Refused {
  /** The answer of the real service. */
  answer: Answer;
  violations: readonly Violation[];
}

export interface SenderRequest {
  method: string;
  /** The path of the URL, without a query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Returns the event in a request, or why there is none. */
export function readEvent({ method, path, headers, body }: SenderRequest, secret: string): SentEvent | Refused {
  const [, name, segment = ""] = /^\/booking-event\/([a-z]+)(?:\/(.*))?$/.exec(path) ?? [];
  const kind = eventKinds.find((each) => each === name);
  if (kind === undefined) return refuse(answers.noSuchPath);
  if (method !== "POST") return refuse(answers.wrongMethod("POST"));
  if (secretOf(segment, headers.authorization) !== secret) return refuse(answers.invalidSecret);
  const text = decode(body, headers["content-type"]);
  if (text === undefined) return refuse(answers.invalidUtf8);
  const read = readPayload(text, headers["content-type"]);
  if ("status" in read) return refuse(read);
  const { payload } = read;
  const key = (headers["idempotency-key"] || headers["webhook-id"])?.toString();
  if (key && !isIdempotencyKey(key.replace(/^"(.*)"$/, "$1"))) return refuse(answers.invalidIdempotencyKey);
  const { warnings, hasEqualNames } = replaceUnstorableText(payload);
  if (hasEqualNames) return refuse(answers.equalNames);
  const result = validatePayload(kind, payload);
  if (!result.success) return refuse(answers.invalidData(result.violationList), result.violationList);
  return {
    kind,
    booking: JSON.stringify([referenceKindOf(result.payload), bookingReferenceOf(result.payload)]),
    content: toCanonicalJson(payload) ?? "",
    key,
    warnings: [...(read.warnings ?? []), ...warnings, ...findWarnings(kind, result.payload)],
  };
}

function refuse(answer: Answer, violations: readonly Violation[] = []): Refused {
  return { answer, violations };
}

/** Returns the secret in the path or in `Authorization: Bearer`; undefined if there are two, or it cannot be decoded. */
function secretOf(segment: string, authorization = ""): string | undefined {
  const [, bearer] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  try {
    const inPath = decodeURIComponent(segment.replace(/\/$/, ""));
    return bearer === undefined ? inPath : inPath === "" ? bearer : undefined;
  } catch {
    return undefined;
  }
}

/** Returns undefined for bytes that are not of the declared charset, or of none that this program knows. */
function decode(body: Buffer, type = ""): string | undefined {
  try {
    const [, charset = "utf-8"] = /;\s*charset="?([\w-]+)/i.exec(type) ?? [];
    return new TextDecoder(charset, { fatal: true }).decode(body);
  } catch {
    return undefined;
  }
}

interface ReadPayload {
  payload: Record<string, unknown>;
  warnings?: readonly FieldWarning[];
}

function readPayload(text: string, type = ""): ReadPayload | Answer {
  const isJson = /^(?:application|text)\/json\b|\+json\b/i.test(type);
  if (!isJson && !/^\s*\{/.test(text)) return readForm(text.trimEnd());
  if (text === "") return { payload: {} };
  try {
    return { payload: parseJsonObject(text), ...(!isJson && { warnings: [requestWarnings["wrong-content-type"]] }) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return isJson || error.kind !== "malformed" ? answerTo(error) : answers.wrongContentType(error);
  }
}

function answerTo(error: JsonError): Answer {
  if (error.kind === "not-an-object") return answers.notAnObject;
  return error.kind === "repeated-key" ? answers.repeatedJsonKey(error) : answers.malformedJson(error);
}

const listedNames: ReadonlySet<string> = new Set(bookingFields.map(({ name }) => name));

/** Of an unlisted name that is there twice, the last value counts, because nothing here depends on it. */
function readForm(text: string): ReadPayload | Answer {
  const fields = decodeFormFields(text);
  if (fields === undefined) return answers.invalidUtf8;
  const listed = fields.map(([name]) => name).filter((name) => listedNames.has(name));
  return new Set(listed).size < listed.length ? answers.repeatedFormField : { payload: Object.fromEntries(fields) };
}
