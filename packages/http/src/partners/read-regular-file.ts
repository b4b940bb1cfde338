import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

export type ReadText = (path: string) => Promise<string>;

/** Node reads files and resolves host names on four threads. A read that hangs blocks one of them until it ends. */
const maxHungReads = 2;

/** The file cannot be read for a reason that has no error code of the operating system. */
class Unreadable extends Error {
  override name = "Unreadable";
}

/**
 * Reads a file without waiting for a writer, as reading a named pipe would, and never from a device, which has no end.
 */
export async function readRegularFile(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await file.stat()).isFile()) throw new Unreadable("it is not a regular file");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/**
 * Returns `read` with a time limit, for example for a network file system whose server is unreachable. A read that
 * exceeds the limit continues, because it cannot be cancelled, and the next read may find another file at the path. The
 * number of such reads is limited.
 *
 * @throws what `read` throws, or an error that the read does not end
 */
export function createReaderWithTimeout(read: ReadText, limitMs: number): ReadText {
  let hung = 0;
  let isExitWatched = false;
  const doesNotEnd = () => new Unreadable(`no end after ${limitMs} ms`);

  return async function readWithTimeout(path) {
    if (hung >= maxHungReads) throw doesNotEnd();
    const stopWaiting = new AbortController();
    let isHung = false;
    const reading = read(path).finally(() => {
      if (isHung) hung -= 1;
      stopWaiting.abort();
    });
    const waiting = wait(limitMs, undefined, { signal: stopWaiting.signal }).then(() => {
      isHung = true;
      hung += 1;
      if (!isExitWatched) process.once("exit", endDespiteHungRead);
      isExitWatched = true;
      throw doesNotEnd();
    });
    waiting.catch(() => {});
    return Promise.race([reading, waiting]);
  };

  /** Node waits for its threads when it exits, so a hanging read would block the exit whatever its exit code. */
  function endDespiteHungRead(): void {
    if (hung > 0) process.kill(process.pid, "SIGKILL");
  }
}

/** Returns the operating system's error code, or a description of the problem. */
export function describeReadError(error: unknown): string {
  if (error instanceof Unreadable) return error.message;
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
