import { JsonError, parseJsonObject } from "@booking-events/schema";
import { CommandFailure } from "../../terminal/command-failure.ts";

const lineFeed = 0x0a;
const blank = /^[\ufeff\s]*$/;
const compressions = [
  { name: "gzip", start: [0x1f, 0x8b], command: "gunzip -c" },
  { name: "zip", start: [0x50, 0x4b, 0x03, 0x04], command: "unzip -p" },
  { name: "zstd", start: [0x28, 0xb5, 0x2f, 0xfd], command: "zstd -dc" },
  { name: "xz", start: [0xfd, 0x37, 0x7a, 0x58], command: "xz -dc" },
  { name: "bzip2", start: [0x42, 0x5a, 0x68], command: "bzip2 -dc" },
];

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
    requireFormat(head, { line, isWhole: line !== undefined, file });
    yield head;
    head = undefined;
  }
  if (head === undefined) return;
  requireFormat(head, { line: firstLine(head), isWhole: true, file });
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

function requireFormat(
  head: Buffer,
  { line, isWhole, file }: { line: string | undefined; isWhole: boolean; file: string },
): void {
  const problem = findBinaryFormat(head, file) ?? findOtherText((line ?? head.toString()).trim(), isWhole, file);
  if (problem !== undefined) throw new CommandFailure(`${problem} Nothing was imported.`);
}

function findBinaryFormat(head: Buffer, file: string): string | undefined {
  const compression = compressions.find(({ start }) => start.every((byte, index) => head[index] === byte));
  if (compression !== undefined)
    return `${file} is compressed with ${compression.name}. Import what ${compression.command} makes of it.`;
  const [first, second] = head;
  const hasMark = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  if (head.length > 1 && (hasMark || first === 0 || second === 0))
    return `${file} is UTF-16 or binary, not UTF-8. Import what iconv -f UTF-16 -t UTF-8 makes of it.`;
  return undefined;
}

function findOtherText(text: string, isWhole: boolean, file: string): string | undefined {
  const line = text.replace(/^\ufeff\s*/, "");
  if (line === "") return isWhole ? `${file} is empty.` : undefined;
  if (line.startsWith("["))
    return `${file} is a JSON array, not JSON lines. Import what jq -c '.[]' makes of it: each booking on a line.`;
  if (!line.startsWith("{"))
    return `${file} is not JSON lines: its first line does not begin with {. Each line must be a booking as a JSON object.`;
  if (!isWhole) return undefined;
  if (line.endsWith(","))
    return `${file} is part of a JSON array, not JSON lines: its first line ends with a comma. Each line must be a booking.`;
  if (isUnfinished(line))
    return `${file} is not JSON lines: its first line is no whole JSON object. Import what jq -c . makes of it.`;
  return undefined;
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
