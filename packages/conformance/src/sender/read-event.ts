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
  JsonError,
  parseJsonObject,
  referenceKindOf,
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
  const kind = eventKinds.find((each) => path.startsWith(`/booking-event/${each}/`));
  if (kind === undefined) return refuse(answers.noSuchPath);
  if (method !== "POST") return refuse(answers.wrongMethod("POST"));
  if (!isSecret(path.slice(`/booking-event/${kind}/`.length), secret)) return refuse(answers.invalidSecret);
  const text = decode(body, headers["content-type"]);
  if (text === undefined) return refuse(answers.invalidUtf8);
  const read = readPayload(text, headers["content-type"]);
  if ("status" in read) return refuse(read);
  const { payload, warnings = [] } = read;
  const result = validatePayload(kind, payload);
  if (!result.success) return refuse(answers.invalidData(result.violationList), result.violationList);
  return {
    kind,
    booking: JSON.stringify([referenceKindOf(result.payload), bookingReferenceOf(result.payload)]),
    content: toCanonicalJson(payload) ?? "",
    warnings: [...warnings, ...findWarnings(kind, result.payload)],
  };
}

function refuse(answer: Answer, violations: readonly Violation[] = []): Refused {
  return { answer, violations };
}

function isSecret(segment: string, secret: string): boolean {
  try {
    return decodeURIComponent(segment.replace(/\/$/, "")) === secret;
  } catch {
    return false;
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

const wrongContentType: FieldWarning = {
  message: "The body is JSON, although its Content-Type is missing or another one. Send application/json.",
  code: "wrong-content-type",
  propertyPath: [],
  field: "",
};

interface ReadPayload {
  payload: Record<string, unknown>;
  warnings?: readonly FieldWarning[];
}

function readPayload(text: string, type = ""): ReadPayload | Answer {
  const isJson = /^(?:application|text)\/json\b|\+json\b/i.test(type);
  if (!isJson && !/^\s*\{/.test(text)) return readForm(text.trimEnd());
  try {
    return { payload: parseJsonObject(text), ...(!isJson && { warnings: [wrongContentType] }) };
  } catch (error) {
    if (error instanceof JsonError) return answers.notAnObject;
    throw error;
  }
}

const listedNames: ReadonlySet<string> = new Set(bookingFields.map(({ name }) => name));

/** Of an unlisted name that is there twice, the last value counts, because nothing here depends on it. */
function readForm(text: string): ReadPayload | Answer {
  const fields = decodeFormFields(text);
  if (fields === undefined) return answers.invalidUtf8;
  const listed = fields.map(([name]) => name).filter((name) => listedNames.has(name));
  return new Set(listed).size < listed.length ? answers.repeatedFormField : { payload: Object.fromEntries(fields) };
}
