import { write, writeSync } from "node:fs";

/** Lines are written in batches, of this many characters or after this many milliseconds, whichever comes first. */
const batch = { characters: 32_768, intervalMs: 100 };
/** The maximum number of characters kept while they cannot be written. Further lines are lost. */
const maxBufferedCharacters = 4 * 1_024 * 1_024;
/** At exit: how often, and at which interval, writing to a full pipe is retried before its lines are dropped. */
const finalRetries = { count: 20, intervalMs: 10 };

/**
 * Writes lines to a file descriptor in few writes, without making callers wait. Lines that cannot be written, because a
 * disk is full or nobody reads the pipe, are lost without affecting the process.
 *
 * pino's own destination (sonic-boom 4.2.1) measures all of its buffered text again for each line. If its output is
 * broken when the process exits, it tries to write the rest endlessly.
 */
export class LogWriter {
  readonly #fd: number;
  #lines = "";
  #isWriting = false;
  #isDue = false;

  constructor(fd: number) {
    this.#fd = fd;
    process.on("exit", () => this.flushSync());
  }

  write(line: string): void {
    if (this.#lines.length >= maxBufferedCharacters) return;
    this.#lines += line;
    if (this.#lines.length >= batch.characters) this.#flush();
    else this.#flushSoon();
  }

  /** Writes the remaining lines if possible. It does not wait for a write in progress. */
  flushSync(): void {
    let rest = Buffer.from(this.#lines);
    this.#lines = "";
    for (let tries = 0; rest.length > 0 && tries < finalRetries.count; ) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if (!isBusy(error)) return;
        tries += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, finalRetries.intervalMs);
      }
    }
  }

  /** A process that logs nothing is woken for nothing. */
  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => {
      this.#isDue = false;
      this.#flush();
    }, batch.intervalMs).unref();
  }

  #flush(): void {
    if (this.#isWriting || this.#lines === "") return;
    this.#isWriting = true;
    const bytes = Buffer.from(this.#lines);
    this.#lines = "";
    this.#writeFrom(bytes, 0);
  }

  #writeFrom(bytes: Buffer, start: number): void {
    write(this.#fd, bytes, start, (error, written) => {
      if (error !== null && isBusy(error)) {
        setTimeout(() => this.#writeFrom(bytes, start), batch.intervalMs).unref();
      } else if (error === null && start + written < bytes.length) {
        this.#writeFrom(bytes, start + written);
      } else {
        this.#isWriting = false;
        if (this.#lines.length >= batch.characters) this.#flush();
        else if (this.#lines !== "") this.#flushSoon();
      }
    });
  }
}

/** The error of a full pipe with a slow reader. */
function isBusy(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EAGAIN";
}
