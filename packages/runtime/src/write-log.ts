import { write, writeSync } from "node:fs";

/** Lines are written in batches, of this many characters or after this many milliseconds, whichever comes first. */
const batch = { characters: 32_768, intervalMs: 100 };
/** The maximum number of characters kept while they cannot be written. Further lines are lost. */
const maxBufferedCharacters = 4 * 1_024 * 1_024;
/** At exit: how often, and at which interval, writing to a full pipe is retried before its lines are dropped. */
const finalRetries = { count: 20, intervalMs: 10 };

export type LogWriter = ReturnType<typeof createLogWriter>;

/**
 * Writes lines to a file descriptor in few writes, without making callers wait. Lines that cannot be written, because a
 * disk is full or nobody reads the pipe, are lost without affecting the process.
 *
 * pino's own destination (sonic-boom 4.2.1) measures all of its buffered text again for each line. If its output is
 * broken when the process exits, it tries to write the rest endlessly.
 */
export function createLogWriter(fd: number) {
  let lines = "";
  let isWriting = false;
  let isDue = false;

  /** A process that logs nothing is woken for nothing. */
  function flushSoon(): void {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      flush();
    }, batch.intervalMs).unref();
  }

  function flush(): void {
    if (isWriting || lines === "") return;
    isWriting = true;
    const bytes = Buffer.from(lines);
    lines = "";
    writeFrom(bytes, 0);
  }

  function writeFrom(bytes: Buffer, start: number): void {
    write(fd, bytes, start, (error, written) => {
      if (error !== null && isBusy(error)) {
        setTimeout(writeFrom, batch.intervalMs, bytes, start).unref();
      } else if (error === null && start + written < bytes.length) {
        writeFrom(bytes, start + written);
      } else {
        isWriting = false;
        if (lines.length >= batch.characters) flush();
        else if (lines !== "") flushSoon();
      }
    });
  }

  function flushSync(): void {
    let rest = Buffer.from(lines);
    lines = "";
    for (let tries = 0; rest.length > 0 && tries < finalRetries.count; ) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        if (!isBusy(error)) return;
        tries += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, finalRetries.intervalMs);
      }
    }
  }

  process.on("exit", flushSync);
  return {
    write(line: string): void {
      if (lines.length >= maxBufferedCharacters) return;
      lines += line;
      if (lines.length >= batch.characters) flush();
      else flushSoon();
    },
    /** Writes the remaining lines if possible. It does not wait for a write in progress. */
    flushSync,
  };
}

/** The error of a full pipe with a slow reader. */
function isBusy(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EAGAIN";
}
