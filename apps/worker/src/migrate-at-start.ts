import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@booking-events/runtime";
import {
  type DigestKey,
  DigestKeyError,
  migrate,
  openDigestKey,
  readDatabaseIdentity,
  SchemaRefusedError,
  UnusableDatabaseError,
} from "@booking-events/store";
import type { Pool } from "pg";
import { classifyFault } from "./outages/classify-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;
const finalErrors = [DigestKeyError, UnusableDatabaseError];

interface MigrationParts {
  databaseUrl: string;
  schema: string;
  pool: Pool;
  testPool: Pool;
  /** The setting `DIGEST_KEY`. Default: the key in the database. */
  digestKey: string | undefined;
  logger: Logger;
  signal: AbortSignal;
}

/** Migrates the database when the worker starts, and reads its id and its key. The worker can do nothing without its tables. */
export class Migration {
  readonly #parts: MigrationParts;
  #digestKey: DigestKey | undefined;
  #database: string | undefined;
  #faultCode: string | null = null;

  constructor(parts: MigrationParts) {
    this.#parts = parts;
  }

  isDone(): boolean {
    return this.#digestKey !== undefined;
  }

  /** The code of the fault that delays the migration; null: there is none. */
  currentFault(): string | null {
    return this.#faultCode;
  }

  /** @throws before the migration is done */
  digestKey(): DigestKey {
    if (this.#digestKey === undefined) throw new Error("The key is read when the database has been migrated.");
    return this.#digestKey;
  }

  /** The database's id, as long as this process lives. @throws before the migration is done */
  database(): string {
    if (this.#database === undefined) throw new Error("The id is read when the database has been migrated.");
    return this.#database;
  }

  /**
   * Retries while PostgreSQL is unavailable or refuses.
   *
   * @returns the names of the migrations that were run
   * @throws one of {@link finalErrors}, since waiting does not help; `signal.reason` when the signal aborts
   */
  async run(): Promise<string[]> {
    const { signal } = this.#parts;
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      signal.throwIfAborted();
      const migrations = await this.#attempt();
      if (migrations !== undefined) return migrations;
      await sleep(delayMs, undefined, { signal }).catch(() => {});
    }
  }

  async #attempt(): Promise<string[] | undefined> {
    const { databaseUrl, schema, pool, testPool, digestKey, logger } = this.#parts;
    try {
      const migrations = await migrate(databaseUrl, { schema });
      this.#database = (await readDatabaseIdentity(pool)).id;
      this.#digestKey = await openDigestKey(pool, digestKey);
      // The same key. Lookup and ops, too, see whether they have it.
      await openDigestKey(testPool, digestKey);
      if (this.#faultCode !== null) logger.info("PostgreSQL is available again");
      this.#faultCode = null;
      return migrations;
    } catch (error) {
      if (finalErrors.some((type) => error instanceof type)) throw error;
      const { code } = classifyFault(error);
      if (this.#faultCode === null) logger.error({ code }, describeWaiting(error));
      this.#faultCode = code;
      return undefined;
    }
  }
}

/** Of the messages, this one is known to hold only names. */
function describeWaiting(error: unknown): string {
  if (error instanceof SchemaRefusedError) return error.message;
  return "PostgreSQL is unavailable: waiting for it to migrate the database";
}
