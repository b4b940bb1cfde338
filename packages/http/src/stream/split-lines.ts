const newline = 0x0a;
const carriageReturn = 0x0d;

export interface Line {
  /** From 1. Blank lines count. */
  number: number;
  /** Undefined: it is too long. */
  bytes: Buffer | undefined;
}

/** Splits the chunks of a body into lines. It holds at most one line, however small the chunks are. */
export class LineSplitter {
  readonly #maxLineBytes: number;
  /** Of the line that has begun. */
  #held: Buffer | undefined;
  #heldBytes = 0;
  #isTooLong = false;
  #number = 1;

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes;
  }

  /** The number of the next line that is yielded, blank ones aside. */
  get number(): number {
    return this.#isTooLong ? this.#number + 1 : this.#number;
  }

  /** Yields the lines that are complete, and one that is too long as soon as that is known. Leaves out empty ones. */
  *split(chunk: Buffer): Generator<Line> {
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(newline, start);
      const end = found === -1 ? chunk.length : found;
      yield* this.#add(chunk.subarray(start, end), found !== -1);
      start = end + 1;
    }
  }

  *#add(part: Buffer, isLast: boolean): Generator<Line> {
    // A line from Windows ends with \r\n, of which neither counts.
    const maxBytes = this.#maxLineBytes + (part.at(-1) === carriageReturn ? 1 : 0);
    if (!this.#isTooLong && part.length > 0 && this.#heldBytes + part.length > maxBytes) {
      this.#isTooLong = true;
      yield { number: this.#number, bytes: undefined };
    }
    if (!isLast) {
      if (!this.#isTooLong) this.#hold(part);
      return;
    }
    if (!this.#isTooLong && this.#heldBytes + part.length > 0) yield { number: this.#number, bytes: this.#join(part) };
    this.#number += 1;
    this.#heldBytes = 0;
    this.#isTooLong = false;
  }

  #hold(part: Buffer): void {
    this.#held ??= Buffer.allocUnsafeSlow(this.#maxLineBytes + 1);
    part.copy(this.#held, this.#heldBytes);
    this.#heldBytes += part.length;
  }

  #join(part: Buffer): Buffer {
    if (this.#heldBytes === 0) return part;
    this.#hold(part);
    return Buffer.from(this.#held?.subarray(0, this.#heldBytes) ?? []);
  }
}
