import { setTimeout as sleep } from "node:timers/promises";
import type { Queryable } from "@booking-events/store";
import type pg from "pg";
import { connect, disconnect } from "./connect.ts";
import { type FeedLogger, nameError } from "./logger.ts";
import { type BookingChange, readPage } from "./read-changes.ts";
import type { FeedTables } from "./tables.ts";

/** For a page, also of the largest events. A standby that takes longer is as good as none. */
const answerTimeoutMs = 5_000;
const lookIntervalMs = 20;
/** After a failure, the primary is read from for this long. */
const avoidMs = 10_000;

/** Reads the feed from a standby, as far as the standby has it. */
export interface Standby {
  /**
   * Waits for the standby to replay the next changes, but not long. Ids have no gaps, so the page is complete however
   * far the standby is behind. See {@link keepConfirmed} for a standby that is ahead.
   *
   * @returns undefined if the primary must be asked
   */
  readPage(page: { after: number; limit: number; tables: FeedTables }): Promise<BookingChange[] | undefined>;
  /** Runs `work` with a connection of its own, or with undefined if the primary must be asked. */
  use<Result>(work: (client: pg.Client | undefined) => Promise<Result>): Promise<Result>;
}

/** @param options.waitMs how long to wait for the standby to replay changes that the primary has */
export function createStandby(
  databaseUrl: string,
  { name, waitMs, logger, signal }: { name: string; waitMs: number; logger: FeedLogger; signal: AbortSignal },
): Standby {
  let reading: pg.Client | undefined;
  let avoidUntilMs = 0;
  const isAvoided = () => performance.now() < avoidUntilMs;

  function stopReading(): void {
    if (reading !== undefined) disconnect(reading);
    reading = undefined;
  }

  function avoid(error: unknown): void {
    avoidUntilMs = performance.now() + avoidMs;
    if (!signal.aborted) logger.warn({ name, code: nameError(error) }, "the standby failed: reading from the primary");
  }

  signal.addEventListener("abort", stopReading, { once: true });
  return {
    async readPage(page) {
      if (isAvoided()) return undefined;
      try {
        reading ??= await connect(databaseUrl, name, answerTimeoutMs);
        const deadlineMs = performance.now() + waitMs;
        for (;;) {
          const changes = await readPage(reading, page);
          if (changes.length > 0) return isComplete(changes, page.after) ? changes : undefined;
          if (signal.aborted || performance.now() > deadlineMs) return undefined;
          await sleep(lookIntervalMs, undefined, { signal }).catch(() => {});
        }
      } catch (error) {
        stopReading();
        avoid(error);
        return undefined;
      }
    },
    async use(work) {
      if (isAvoided()) return work(undefined);
      let client: pg.Client | undefined;
      try {
        client = await connect(databaseUrl, name);
        return await work(client);
      } catch (error) {
        avoid(error);
        throw error;
      } finally {
        if (client !== undefined) disconnect(client);
      }
    },
  };
}

/**
 * Returns the changes before the first one that the primary does not have. A standby may have received more than the one
 * that was promoted, and the new primary gives the ids of those changes to others.
 */
export async function keepConfirmed(
  primary: Queryable,
  changes: BookingChange[],
  tables: FeedTables,
): Promise<BookingChange[]> {
  const { rows } = await primary.query<{ id: number }>(
    `select id::float8 as id from ${tables.changes}
     join unnest($1::bigint[], $2::uuid[], $3::integer[]) as page (id, event_id, revision)
       using (id, event_id, revision)`,
    [changes.map(({ id }) => id), changes.map(({ eventId }) => eventId), changes.map(({ revision }) => revision)],
  );
  const confirmed = new Set(rows.map(({ id }) => id));
  const missing = changes.findIndex(({ id }) => !confirmed.has(id));
  return missing === -1 ? changes : changes.slice(0, missing);
}

function isComplete(changes: BookingChange[], after: number): boolean {
  return changes.every(({ id }, index) => id === after + 1 + index);
}
