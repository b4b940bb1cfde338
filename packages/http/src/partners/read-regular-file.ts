import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { DeadlineExceeded, withDeadline } from "@booking-events/runtime";

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
  const hung = new Set<Promise<string>>();

  return async function readWithTimeout(path) {
    if (hung.size >= maxHungReads) throw new Unreadable(`no end after ${limitMs} ms`);
    const reading = read(path);
    try {
      return await withDeadline(reading, limitMs);
    } catch (error) {
      if (!(error instanceof DeadlineExceeded)) throw error;
      hung.add(reading);
      process.once("exit", endDespiteHungRead);
      const forget = () => {
        hung.delete(reading);
        process.off("exit", endDespiteHungRead);
      };
      reading.then(forget, forget);
      throw new Unreadable(`no end after ${limitMs} ms`);
    }
  };
}

/** Node waits for its threads when it exits, so a hanging read would block the exit whatever its exit code. */
function endDespiteHungRead(): void {
  process.kill(process.pid, "SIGKILL");
}

/** Returns the operating system's error code, or a description of the problem. */
export function describeReadError(error: unknown): string {
  if (error instanceof Unreadable) return error.message;
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
