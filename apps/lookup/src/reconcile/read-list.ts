import type { IncomingMessage } from "node:http";
import { LineSplitter, Pace, Refusal, readChunks } from "@booking-events/http";
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

/** A list of a million references over a slow line. What we compare meanwhile does not count. */
const sendingTimeoutMs = 300_000;

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
  pace = new Pace({ inAllMs: sendingTimeoutMs }),
): AsyncGenerator<ListedReference[]> {
  const { maxLines, maxLineBytes } = limits;
  const splitter = new LineSplitter(maxLineBytes);
  let page: ListedReference[] = [];
  for await (const chunk of readChunks(req, pace)) {
    for (const { bytes, number } of splitter.split(chunk)) {
      if (number > maxLines) throw new Refusal(lookupAnswers.listTooLong(maxLines));
      const listed = readLine(bytes, number, maxLineBytes);
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
    // Empty lines count. After the last one comes the newline that we add.
    if (splitter.number > maxLines + 2) throw new Refusal(lookupAnswers.listTooLong(maxLines));
  }
  if (page.length > 0) yield page;
}

type Listed = Omit<ListedReference, "line">;

/** Returns undefined for an empty line. */
function readLine(bytes: Buffer | undefined, number: number, maxLineBytes: number): Listed | WrongLine | undefined {
  if (bytes === undefined) return { code: "too-long", problem: `it is longer than ${maxLineBytes} bytes.` };
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
