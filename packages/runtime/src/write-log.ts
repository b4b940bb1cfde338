import { write, writeSync } from "node:fs";

/** Lines are written together: this many characters, or those of this many milliseconds, whichever is first. */
const writtenTogether = { characters: 32_768, intervalMs: 100 };
/** While nobody takes them, so many characters are kept; what comes then is lost. */
const keptCharacters = 4 * 1_024 * 1_024;
/** At the end of the process: how long a full pipe may take to have room again, before its lines are given up. */
const lastTries = { count: 20, intervalMs: 10 };

export interface LogWriter {
  write(line: string): void;
  /** Writes what is left, as far as that is possible. What is being written at that moment is out of its reach. */
  flushSync(): void;
}

/**
 * Writes lines to a file descriptor, by few writes and without making anybody wait for them. What can't be written,
 * because a disk is full or nobody reads any more, is lost, and hurts nobody else.
 *
 * pino's own destination (sonic-boom 4.2.1) measures all that it has gathered again for each line; and when the process
 * ends while its output is broken, it tries to write the rest without end.
 */
export function createLogWriter(fd: number): LogWriter {
  let lines = "";
  let isWriting = false;

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
        setTimeout(writeFrom, writtenTogether.intervalMs, bytes, start).unref();
      } else if (error === null && start + written < bytes.length) {
        writeFrom(bytes, start + written);
      } else {
        isWriting = false;
        if (lines.length >= writtenTogether.characters) flush();
      }
    });
  }

  function flushSync(): void {
    let rest = Buffer.from(lines);
    lines = "";
    for (let tries = 0; rest.length > 0 && tries < lastTries.count; ) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        if (!isBusy(error)) return;
        tries += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lastTries.intervalMs);
      }
    }
  }

  setInterval(flush, writtenTogether.intervalMs).unref();
  process.on("exit", flushSync);
  return {
    write(line) {
      if (lines.length >= keptCharacters) return;
      lines += line;
      if (lines.length >= writtenTogether.characters) flush();
    },
    flushSync,
  };
}

/** A pipe without room, whose reader is slow. */
function isBusy(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EAGAIN";
}
