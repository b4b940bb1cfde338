import { copyFileSync, existsSync, readdirSync, renameSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";

/** Of each log: its file and the ones kept of it hold a little more than 50 MiB at most. */
const logLimits = { maxBytes: 10 * 1_024 * 1_024, keptFiles: 4 };

const lookIntervalMs = 1_000;

/** Looks every second at the logs in a folder, and keeps each within its limits, until the process ends. */
export function watchLogs(dir: string): void {
  limitLogs(dir);
  setInterval(() => limitLogs(dir), lookIntervalMs).unref();
}

/**
 * Moves what a log has over its limit into `<log>.1`, and what was there into `<log>.2`, and so on; the last is dropped.
 *
 * The file is copied and emptied, and not renamed: Redis and PostgreSQL go on writing to the file that they were given,
 * for which they have to append to it. A line that is written between the copy and the emptying is lost. No library
 * does this: those that rotate write the file themselves, so that the servers would depend on this process.
 */
export function limitLogs(dir: string, { maxBytes, keptFiles } = logLimits): void {
  // Somebody may have deleted it.
  const names = existsSync(dir) ? readdirSync(dir) : [];
  for (const name of names.filter((name) => name.endsWith(".log"))) {
    const path = join(dir, name);
    try {
      if (statSync(path).size <= maxBytes) continue;
      for (let number = keptFiles - 1; number >= 1; number -= 1)
        renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
      copyFileSync(path, `${path}.1`);
      truncateSync(path);
    } catch {
      // A full disk, say. The next look tries again.
    }
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
