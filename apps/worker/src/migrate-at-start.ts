import { setTimeout as sleep } from "node:timers/promises";
import { NewerSchemaError } from "@booking-events/store";
import { describeFault, type Fault } from "./deliver/describe-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;

/**
 * Migrates the database, and tries again for as long as PostgreSQL is out, or does not let us: without its tables the
 * worker can do nothing else.
 *
 * @param options.onFault told of each failure, and of the success after one with null
 * @returns the names of the migrations that were run
 * @throws NewerSchemaError, since only another release helps; `signal.reason` when the signal aborts
 */
export async function migrateAtStart(options: {
  migrate: () => Promise<string[]>;
  onFault: (fault: Fault | null) => void;
  signal: AbortSignal;
}): Promise<string[]> {
  const { migrate, onFault, signal } = options;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
    signal.throwIfAborted();
    try {
      const migrations = await migrate();
      onFault(null);
      return migrations;
    } catch (error) {
      if (error instanceof NewerSchemaError) throw error;
      onFault(describeFault(error));
    }
    await sleep(delayMs, undefined, { signal }).catch(() => {});
  }
}
