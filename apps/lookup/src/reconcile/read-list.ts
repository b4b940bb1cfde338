import type { IncomingMessage } from "node:http";
import { Pace, Refusal, readChunks } from "@booking-events/http";
import { decodeUtf8, JsonError, lookupAnswers, parseJsonObject, type ReferenceKind } from "@booking-events/schema";
import { isReferenceKind, readReference } from "../bookings/describe-booking.ts";
import type { WrongLine, WrongLines } from "./wrong-lines.ts";

/** A line of a partner's list. */
export interface ListedReference {
  /** Counted from 1. */
  line: number;
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
 * line and what Node has received are held. Empty lines are skipped, but count. Wrong lines are left out.
 *
 * @throws Refusal for too many wrong lines, and for a list that is too long or arrives too slowly; ClientGone
 */
export async function* readList(
  req: IncomingMessage,
  wrong: WrongLines,
  limits = listLimits,
  pace = new Pace(),
): AsyncGenerator<ListedReference[]> {
  const lines = createLineSplitter(limits);
  let page: ListedReference[] = [];
  for await (const chunk of readChunks(req, pace)) {
    for (const [bytes, number] of lines.split(chunk)) {
      const listed = readLine(bytes, number, limits);
      if (listed === undefined) continue;
      if ("problem" in listed) {
        wrong.add(number, listed);
        continue;
      }
      page.push({ line: number, ...listed });
      if (page.length < limits.referencesPerPage) continue;
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

/** Of a line that is too long, as much is passed on as shows that. */
function createLineSplitter({ maxLines, maxLineBytes }: typeof listLimits) {
  let rest: Buffer = Buffer.alloc(0);
  let lineNumber = 0;

  return {
    *split(chunk: Buffer): Generator<[line: Buffer, number: number]> {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
        lineNumber += 1;
        // One more, since we add a newline to the last line, which may have one.
        if (lineNumber > maxLines + 1 || (lineNumber > maxLines && end > start))
          throw new Refusal(lookupAnswers.listTooLong(maxLines));
        if (end > start) yield [bytes.subarray(start, end), lineNumber];
        start = end + 1;
      }
      rest = bytes.subarray(start, start + maxLineBytes + 1);
    },
  };
}

type Listed = Omit<ListedReference, "line">;

/** Returns undefined for an empty line. */
function readLine(bytes: Buffer, number: number, { maxLineBytes }: typeof listLimits): Listed | WrongLine | undefined {
  if (bytes.length > maxLineBytes) return { code: "too-long", problem: `it is longer than ${maxLineBytes} bytes.` };
  const text = decodeUtf8(bytes);
  if (text === undefined) return { code: "malformed", problem: "it is not valid UTF-8." };
  // Files from Windows often begin with a byte order mark.
  const line = number === 1 && text.startsWith("\ufeff") ? text.slice(1) : text;
  return line.trim() === "" ? undefined : parseLine(line);
}

const problems: Record<JsonError["kind"], WrongLine> = {
  malformed: { code: "malformed", problem: "it is not valid JSON." },
  "repeated-key": { code: "repeated-key", problem: "it has a duplicate key." },
  "not-an-object": { code: "not-an-object", problem: "it is not a JSON object." },
};
const digestPattern = /^[0-9a-f]{64}$/i;

/** Further members are ignored: partners send what they have. */
function parseLine(line: string): Listed | WrongLine {
  const object = parseObject(line);
  if (object instanceof JsonError) return problems[object.kind];
  const { reference: written, referenceKind = "trip", digest } = object;
  const reference = readReference(written);
  if (reference === undefined || typeof written !== "string")
    return wrongMember("reference", "reference must be a text of 1 to 8,192 characters.");
  if (!isReferenceKind(referenceKind)) return wrongMember("referenceKind", "referenceKind must be trip or consumer.");
  if (digest === undefined) return { reference, written, referenceKind, digest };
  if (typeof digest !== "string" || !digestPattern.test(digest))
    return wrongMember("digest", "digest must have 64 hexadecimal digits.");
  return { reference, written, referenceKind, digest: digest.toLowerCase() };
}

function parseObject(line: string): Record<string, unknown> | JsonError {
  try {
    return parseJsonObject(line);
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

function wrongMember(member: NonNullable<WrongLine["member"]>, problem: string): WrongLine {
  return { code: "malformed", member, problem };
}
