import { JsonError, parseJsonObject } from "@booking-events/schema";
import { CommandFailure } from "../../terminal/command-failure.ts";

const lineFeed = 0x0a;
const blank = /^[\ufeff\s]*$/;

/**
 * Passes a file on, unless its first line shows that it has another format than JSON lines. Each of its lines would be
 * rejected with a message of its own. Worse, some would be imported by chance, such as the last item of an array, which
 * no comma follows.
 *
 * @param file what to call it
 * @param maxLineBytes how much of a line is looked at
 * @throws CommandFailure
 */
export async function* requireJsonLines(
  chunks: AsyncIterable<Buffer | string>,
  file: string,
  maxLineBytes: number,
): AsyncGenerator<Buffer, void> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (head === undefined) {
      yield bytes;
      continue;
    }
    head = Buffer.concat([head, bytes]);
    const line = firstLine(head);
    if (line === undefined && head.length <= maxLineBytes) continue;
    requireFormat(head, line, { isWhole: line !== undefined, file });
    yield head;
    head = undefined;
  }
  if (head === undefined) return;
  requireFormat(head, firstLine(head), { isWhole: true, file });
  yield head;
}

/** @returns the first line that is not blank; undefined: it has not ended */
function firstLine(bytes: Buffer): string | undefined {
  for (let start = 0, end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
    const line = bytes.toString("utf8", start, end);
    if (!blank.test(line)) return line;
    start = end + 1;
  }
  return undefined;
}

/** @param isWhole the line has ended */
function requireFormat(head: Buffer, line: string | undefined, { isWhole, file }: { isWhole: boolean; file: string }) {
  const text = (line ?? head.toString()).replace(/^[\ufeff\s]*/, "").trimEnd();
  if (text === "" && isWhole) throw new CommandFailure(`${file} is empty. Nothing was imported.`);
  if (text.startsWith("{") && !text.includes("\0") && !(isWhole && (text.endsWith(",") || isUnfinished(text)))) return;
  throw new CommandFailure(
    `${file} is not JSON lines in UTF-8: its first line must be a booking, as a whole JSON object. Unpack a compressed ` +
      "file, such as by gunzip -c; convert one in UTF-16 by iconv -f UTF-16 -t UTF-8; make lines of an array by jq -c '.[]', and of objects by jq -c . Nothing was imported.",
  );
}

function isUnfinished(line: string): boolean {
  try {
    parseJsonObject(line);
    return false;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return error.kind === "malformed" && error.column > line.length;
  }
}
