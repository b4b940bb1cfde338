import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

export type ReadText = (path: string) => Promise<string>;

/** Of the four threads on which Node reads files and looks up names. One that hangs is gone until the read ends. */
const maxHungReads = 2;

/** The file can't be read, and the operating system has no error for it. */
class Unreadable extends Error {
  override name = "Unreadable";
}

/** Without waiting for a writer, as reading a named pipe would, and never from a device, which has no end. */
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
 * Gives a read up that takes too long, as on a network file system whose server is gone. Such a read goes on, since
 * nothing can end it; the next one may find another file at the path. Only so many may hang at a time.
 *
 * @returns `read` with a limit. It throws what `read` throws, or that the read does not end
 */
export function createPatientReader(read: ReadText, limitMs: number): ReadText {
  let hung = 0;
  let isExitWatched = false;
  const doesNotEnd = () => new Unreadable(`no end after ${limitMs} ms`);

  return async function readPatiently(path) {
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

  /** Node waits for its threads when it exits, and so for a read that hangs, whatever exit code it was given. */
  function endDespiteHungRead(): void {
    if (hung > 0) process.kill(process.pid, "SIGKILL");
  }
}

/** The operating system's code, or what else is the matter. */
export function describeReadError(error: unknown): string {
  if (error instanceof Unreadable) return error.message;
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
