export interface Line {
  /** From 1. */
  number: number;
  /** Without the line feed. Null: the line is longer than allowed, and was skipped. */
  bytes: Buffer | null;
}

const lineFeed = 0x0a;

/**
 * Splits bytes into lines. It holds at most one line and the chunks that it is in, so a file and a line may have any
 * length.
 *
 * @yields the lines that end in one chunk
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer | string>,
  maxLineBytes: number,
): AsyncGenerator<Line[], void> {
  let number = 0;
  let start: Buffer[] = [];
  let startBytes = 0;

  function add(part: Buffer): void {
    startBytes += part.length;
    if (startBytes <= maxLineBytes) start.push(part);
    else start = [];
  }

  function take(): Line {
    number += 1;
    const bytes = startBytes > maxLineBytes ? null : start.length === 1 ? (start[0] ?? null) : Buffer.concat(start);
    start = [];
    startBytes = 0;
    return { number, bytes };
  }

  for await (const chunk of chunks) {
    const buffer = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    const lines: Line[] = [];
    let from = 0;
    for (let at = buffer.indexOf(lineFeed); at !== -1; at = buffer.indexOf(lineFeed, from)) {
      add(buffer.subarray(from, at));
      lines.push(take());
      from = at + 1;
    }
    if (from < buffer.length) add(buffer.subarray(from));
    if (lines.length > 0) yield lines;
  }
  if (startBytes > 0) yield [take()];
}
