import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@booking-events/runtime";
import { DatabaseEncodingError, DigestKeyError, NewerSchemaError, SchemaRefusedError } from "@booking-events/store";
import { describeFault } from "./outages/describe-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;
const finalErrors = [DatabaseEncodingError, DigestKeyError, NewerSchemaError];

export interface Migration {
  /**
   * Migrates the database, and retries while PostgreSQL is unavailable or refuses. The worker can do nothing without
   * its tables.
   *
   * @returns the names of the migrations that were run
   * @throws one of {@link finalErrors}, since waiting does not help; `signal.reason` when the signal aborts
   */
  run(): Promise<string[]>;
  isDone(): boolean;
  /** The code of the fault that delays the migration; null: there is none. */
  currentFault(): string | null;
}

export function createMigration(options: {
  migrate: () => Promise<string[]>;
  logger: Logger;
  signal: AbortSignal;
}): Migration {
  const { migrate, logger, signal } = options;
  let isDone = false;
  let faultCode: string | null = null;

  async function attempt(): Promise<string[] | undefined> {
    try {
      const migrations = await migrate();
      if (faultCode !== null) logger.info("PostgreSQL is available again");
      faultCode = null;
      isDone = true;
      return migrations;
    } catch (error) {
      if (finalErrors.some((type) => error instanceof type)) throw error;
      const { code } = describeFault(error);
      if (faultCode === null) logger.error({ code }, describeWaiting(error));
      faultCode = code;
      return undefined;
    }
  }

  return {
    async run() {
      for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
        signal.throwIfAborted();
        const migrations = await attempt();
        if (migrations !== undefined) return migrations;
        await sleep(delayMs, undefined, { signal }).catch(() => {});
      }
    },
    isDone: () => isDone,
    currentFault: () => faultCode,
  };
}

/** Of the messages, this one is known to hold only names. */
function describeWaiting(error: unknown): string {
  if (error instanceof SchemaRefusedError) return error.message;
  return "PostgreSQL is unavailable: waiting for it to migrate the database";
}
