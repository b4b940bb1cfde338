import { hash } from "node:crypto";
import type { NumberedEvent } from "@booking-events/queue";
import {
  decodeUtf8,
  type EventKind,
  JsonError,
  parseJsonObject,
  replaceUnstorableText,
  type Violation,
  validatePayload,
} from "@booking-events/schema";
import type { Line } from "./read-lines.ts";

/** What all lines of an import have in common. */
export interface ImportSource {
  partner: string;
  /** The partner's country, if it has one. */
  country?: string | undefined;
  kind: EventKind;
  /** The time at which the bookings were as in the file. */
  asOf: Date;
  maxLineBytes: number;
}

/** Why a line cannot be imported, without any of its values. */
export interface Rejection {
  line: number;
  message: string;
  violationList?: Violation[];
}

const equalNames =
  "The line has two names that differ only in U+0000 or halves of surrogate pairs, which are not stored.";
const byteOrderMark = "\ufeff";
/** What an event's id has room for. */
const maxLineNumber = 2 ** 32 - 1;

/** @returns null for a blank line */
export function checkLine(line: Line, source: ImportSource): NumberedEvent | Rejection | null {
  const { number } = line;
  if (line.bytes === null) return reject(number, `The line is longer than ${source.maxLineBytes} bytes.`);
  if (number > maxLineNumber) return reject(number, `The file has more than ${maxLineNumber} lines. Split it.`);
  const text = decode(line.bytes, number);
  if (text === undefined) return reject(number, "The line is not UTF-8.");
  if (text.trim() === "") return null;
  try {
    const payload = parseJsonObject(text);
    if (replaceUnstorableText(payload).hasEqualNames) return reject(number, equalNames);
    const validation = validatePayload(source.kind, payload);
    if (validation.success) return toEvent(number, line.bytes, validation.payload, source);
    return { line: number, message: "Invalid data", violationList: validation.violationList };
  } catch (error) {
    if (error instanceof JsonError) return reject(number, describeJsonError(error));
    throw error;
  }
}

export function isRejection(result: NumberedEvent | Rejection): result is Rejection {
  return "line" in result;
}

function reject(line: number, message: string): Rejection {
  return { line, message };
}

/** Files from Windows often begin with a byte order mark. */
function decode(bytes: Buffer, number: number): string | undefined {
  const text = decodeUtf8(bytes);
  return number === 1 && text?.startsWith(byteOrderMark) ? text.slice(1) : text;
}

function describeJsonError({ kind, column }: JsonError): string {
  switch (kind) {
    case "malformed":
      return `The line is not valid JSON. The error is at column ${column}.`;
    case "repeated-key":
      return `The line has a duplicate key, at column ${column}.`;
    case "not-an-object":
      return "The line is not a JSON object.";
  }
}

/**
 * All events of an import take the place of its time in the order of receipt, so events received later win. Their ids
 * have the order of the lines. With the key, neither a partner's event nor a second import counts as a sender's retry
 * of a line.
 */
function toEvent(
  number: number,
  bytes: Buffer,
  payload: NumberedEvent["payload"],
  source: ImportSource,
): NumberedEvent {
  const { partner, country, kind, asOf } = source;
  return {
    eventId: createImportId(number, bytes, source),
    kind,
    partner,
    sequence: asOf.getTime() * 1_000,
    receivedAt: asOf.toISOString(),
    idempotencyKey: `import-${asOf.getTime()}-${number}`,
    defaultCountry: country,
    payload,
  };
}

/**
 * A UUIDv7 that is the same each time the line is imported: the import's time, 32 bits of the line's number, and 40
 * bits of a digest instead of random ones.
 */
function createImportId(number: number, bytes: Buffer, { partner, kind, asOf }: ImportSource): string {
  const time = asOf.getTime().toString(16).padStart(12, "0");
  const line = number.toString(16).padStart(8, "0");
  const digest = hash("sha256", Buffer.concat([Buffer.from(`${partner}\0${kind}\0`), bytes]), "hex").slice(0, 10);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${line.slice(0, 3)}-8${line.slice(3, 6)}-${line.slice(6)}${digest}`;
}
