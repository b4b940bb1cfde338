import { Refusal } from "@booking-events/http";
import {
  answers,
  decodeUtf8,
  type EventKind,
  eventKinds,
  isIdempotencyKey,
  JsonError,
  parseJsonObject,
  requestWarnings,
} from "@booking-events/schema";
import { type BodyObject, describeJsonError, makeStorable } from "../body/decode-body.ts";
import type { SentEvent } from "../events/judge-event.ts";

const members = new Set(["kind", "payload", "idempotencyKey"]);

/**
 * Reads a line of a batch. Another member is refused, because it may be meant as the key.
 *
 * @param number of the line, for messages that say where an error is
 * @throws Refusal
 */
export function readLine(bytes: Buffer, number: number): SentEvent {
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new Refusal(answers.invalidUtf8);
  const line = parse(number === 1 ? text.replace(/^\ufeff/, "") : text, number);
  const { kind, payload } = line;
  if (!isKind(kind) || !isObject(payload) || Object.keys(line).some((name) => !members.has(name)))
    throw new Refusal(answers.invalidLine);
  const key = readKey(line["idempotencyKey"]);
  // JSON from well-formed UTF-8 can express what can't be stored by this escape only.
  const { object, warnings } = text.includes("\\u") ? makeStorable(payload) : { object: payload, warnings: [] };
  return {
    kind,
    object,
    json: undefined,
    idempotencyKey: key === "" ? null : key,
    warnings: key === "" ? [requestWarnings["empty-key"], ...warnings] : warnings,
  };
}

function parse(text: string, number: number): Record<string, unknown> {
  try {
    return parseJsonObject(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Refusal(describeJsonError({ kind: error.kind, line: number, column: error.column }));
  }
}

/** @returns an empty one if it is empty */
function readKey(key: unknown = null): string | null {
  if (key === null || key === "") return key;
  if (typeof key !== "string" || !isIdempotencyKey(key)) throw new Refusal(answers.invalidIdempotencyKey);
  return key;
}

function isKind(kind: unknown): kind is EventKind {
  return eventKinds.some((each) => each === kind);
}

function isObject(value: unknown): value is BodyObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
