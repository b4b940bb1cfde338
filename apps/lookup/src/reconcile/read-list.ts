import type { IncomingMessage } from "node:http";
import { Pace, Refusal, readChunks } from "@booking-events/http";
import { decodeUtf8, JsonError, lookupAnswers, parseJsonObject, type ReferenceKind } from "@booking-events/schema";
import { isReferenceKind, readReference } from "../bookings/describe-booking.ts";

/** A line of a partner's list. */
export interface ListedReference {
  /** As it is compared. */
  reference: string;
  /** As the partner wrote it, who finds it again by that. */
  written: string;
  referenceKind: ReferenceKind;
  /** Of the content, in lower-case hex. Undefined: the partner compares no content. */
  digest: string | undefined;
}

export const listLimits = {
  maxLines: 2_000_000,
  /** More than any reference needs that a person has seen. */
  maxLineBytes: 16_384,
  /** References that are compared together. */
  referencesPerPage: 1_000,
};

const newline = 0x0a;

/**
 * Reads a list of NDJSON lines, in pages. The body is read only as fast as its pages are used, and at most a page, a
 * line and what Node has received are held. Empty lines are skipped, but count.
 *
 * @throws Refusal for the first invalid line, and for a list that is too long or arrives too slowly; ClientGone
 */
export async function* readList(
  req: IncomingMessage,
  limits = listLimits,
  pace = new Pace(),
): AsyncGenerator<ListedReference[]> {
  const lines = createLineSplitter(limits);
  let page: ListedReference[] = [];
  for await (const chunk of readChunks(req, pace)) {
    for (const [line, number] of lines.split(chunk)) {
      if (line.trim() === "") continue;
      page.push(parseLine(line, number));
      if (page.length < limits.referencesPerPage) continue;
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

function createLineSplitter({ maxLines, maxLineBytes }: typeof listLimits) {
  let rest: Buffer = Buffer.alloc(0);
  let lineNumber = 0;

  function decode(line: Buffer): string {
    if (line.length > maxLineBytes) throw refuse(lineNumber, `it is longer than ${maxLineBytes} bytes.`);
    const text = decodeUtf8(line);
    if (text === undefined) throw refuse(lineNumber, "it is not valid UTF-8.");
    // Files from Windows often begin with a byte order mark.
    return lineNumber === 1 && text.startsWith("\ufeff") ? text.slice(1) : text;
  }

  return {
    *split(chunk: Buffer): Generator<[line: string, number: number]> {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
        lineNumber += 1;
        // One more, since we add a newline to the last line, which may have one.
        if (lineNumber > maxLines + 1 || (lineNumber > maxLines && end > start))
          throw new Refusal(lookupAnswers.listTooLong(maxLines));
        if (end > start) yield [decode(bytes.subarray(start, end)), lineNumber];
        start = end + 1;
      }
      rest = bytes.subarray(start);
      if (rest.length > maxLineBytes) throw refuse(lineNumber + 1, `it is longer than ${maxLineBytes} bytes.`);
    },
  };
}

const members = new Set(["reference", "referenceKind", "digest"]);
const problems: Record<JsonError["kind"], string> = {
  malformed: "it is not valid JSON.",
  "repeated-key": "it has a duplicate key.",
  "not-an-object": "it is not a JSON object.",
};
const digestPattern = /^[0-9a-f]{64}$/i;

function parseLine(line: string, number: number): ListedReference {
  const { reference: written, referenceKind = "trip", digest } = parseObject(line, number);
  const reference = readReference(written);
  if (reference === undefined || typeof written !== "string")
    throw refuse(number, "reference must be a text of 1 to 8,192 characters.");
  if (!isReferenceKind(referenceKind)) throw refuse(number, "referenceKind must be trip or consumer.");
  if (digest === undefined) return { reference, written, referenceKind, digest };
  if (typeof digest !== "string" || !digestPattern.test(digest))
    throw refuse(number, "digest must have 64 hexadecimal digits.");
  return { reference, written, referenceKind, digest: digest.toLowerCase() };
}

function parseObject(line: string, number: number): Record<string, unknown> {
  let object: Record<string, unknown>;
  try {
    object = parseJsonObject(line);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw refuse(number, problems[error.kind]);
  }
  for (const name of Object.keys(object)) {
    if (!members.has(name)) throw refuse(number, "only reference, referenceKind and digest are allowed.");
  }
  return object;
}

function refuse(line: number, problem: string): Refusal {
  return new Refusal(lookupAnswers.invalidListLine(line, problem));
}
