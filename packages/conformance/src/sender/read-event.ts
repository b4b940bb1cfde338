import type { IncomingHttpHeaders } from "node:http";
import {
  type Answer,
  answers,
  bookingReferenceOf,
  decodeFormFields,
  decodeUtf8,
  type EventKind,
  eventKinds,
  JsonError,
  parseJsonObject,
  referenceKindOf,
  validatePayload,
} from "@booking-events/schema";

export interface SentEvent {
  kind: EventKind;
  /**
   * Names the booking and the kind of event. The key does not tell which event an attempt belongs to, because some
   * senders change it with each attempt.
   */
  id: string;
}

export interface SenderRequest {
  method: string;
  /** The path of the URL, without a query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Returns the event in a request, or the answer of the real service if there is none. */
export function readEvent({ method, path, headers, body }: SenderRequest, secret: string): SentEvent | Answer {
  const kind = eventKinds.find((each) => path.startsWith(`/booking-event/${each}/`));
  if (kind === undefined) return answers.noSuchPath;
  if (method !== "POST") return answers.wrongMethod("POST");
  if (!isSecret(path.slice(`/booking-event/${kind}/`.length), secret)) return answers.invalidSecret;
  const payload = readPayload(headers["content-type"] ?? "", body);
  if (payload === undefined) return answers.unsupportedType;
  if (payload === "unreadable") return answers.notAnObject;
  const result = validatePayload(kind, payload);
  if (!result.success) return answers.invalidData(result.violationList);
  return { kind, id: JSON.stringify([kind, referenceKindOf(result.payload), bookingReferenceOf(result.payload)]) };
}

function isSecret(segment: string, secret: string): boolean {
  try {
    return decodeURIComponent(segment) === secret;
  } catch {
    return false;
  }
}

function readPayload(type: string, body: Buffer): Record<string, unknown> | "unreadable" | undefined {
  const text = decodeUtf8(body);
  if (/^application\/x-www-form-urlencoded\b/i.test(type))
    return toObject(text === undefined ? undefined : decodeFormFields(text));
  if (!/^application\/json\b/i.test(type)) return undefined;
  if (text === undefined) return "unreadable";
  try {
    return parseJsonObject(text);
  } catch (error) {
    if (error instanceof JsonError) return "unreadable";
    throw error;
  }
}

/** A name that is there twice is refused. */
function toObject(fields: [name: string, value: string][] | undefined): Record<string, string> | "unreadable" {
  const object = Object.fromEntries(fields ?? []);
  return fields === undefined || Object.keys(object).length < fields.length ? "unreadable" : object;
}
