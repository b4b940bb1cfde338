import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, type ProcessRecord, recordProcess } from "./process-record.ts";

/** After this long without the lock the work is done all the same: it guards against a coincidence, not a disaster. */
const WAIT_MAX_MS = 90_000;

/** Does the work while no other process does its own under the same lock file. A dead process holds no lock. */
export async function withLock<Result>(
  file: string,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  mkdirSync(dirname(file), { recursive: true });
  const deadline = Date.now() + WAIT_MAX_MS;
  while (!tryToTake(file) && Date.now() < deadline) {
    signal.throwIfAborted();
    await sleep(50);
  }
  try {
    return await work();
  } finally {
    if (holder(file)?.pid === process.pid) rmSync(file, { force: true });
  }
}

function tryToTake(file: string): boolean {
  try {
    writeFileSync(file, JSON.stringify(recordProcess(process.pid)), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const record = holder(file);
    if (record && !isRunning(record)) rmSync(file, { force: true });
    return false;
  }
}

function holder(file: string): ProcessRecord | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // Gone, or being written at this moment.
    return undefined;
  }
}
