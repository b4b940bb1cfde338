import { copyFileSync, globSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";

/** Each log and the older part that is kept of it have at most a little more than 50 MiB. */
const MAX_BYTES = 25 * 1_024 * 1_024;
const INTERVAL_MS = 1_000;

/** Keeps each log in a folder within its limit, until the process ends. */
export function watchLogs(dir: string): void {
  limitLogs(dir);
  setInterval(() => limitLogs(dir), INTERVAL_MS).unref();
}

/**
 * Moves the content of each log that is over the limit to `<log>.1`, and drops what was there.
 *
 * The log is copied and emptied, not renamed, because Redis and PostgreSQL go on appending to the file that they
 * opened. A line written between the copy and the emptying is lost. Libraries that rotate logs write them themselves:
 * the servers would depend on this process.
 */
export function limitLogs(dir: string, maxBytes = MAX_BYTES): void {
  for (const name of globSync("*.log", { cwd: dir })) {
    const path = join(dir, name);
    try {
      if (statSync(path).size <= maxBytes) continue;
      copyFileSync(path, `${path}.1`);
      truncateSync(path);
    } catch {
      // The disk may be full, or somebody may have deleted the log. The next look tries again.
    }
  }
}
