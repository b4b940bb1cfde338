import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { channelOf } from "@booking-events/store";
import pg from "pg";
import { connect, disconnect } from "./connect.ts";
import { type FeedLogger, nameError } from "./logger.ts";
import { growingPauseMs } from "./pauses.ts";

export type WakeUps = ReturnType<typeof createWakeUps>;

const longestPauseMs = 30_000;

interface Listening {
  name: string;
  /** A direct connection to PostgreSQL; null: don't listen. */
  listenUrl: string | null;
  /** Where the feed is. */
  schema: string;
  logger: FeedLogger;
  signal: AbortSignal;
}

/**
 * Says when to look for changes. Listens for notifications on a connection of its own until the signal aborts. While
 * there is no connection, waits end by their time.
 */
export function createWakeUps({ name, listenUrl, schema, logger, signal }: Listening) {
  let isWoken = false;
  let wakeWaiter = () => {};
  const wake = () => {
    isWoken = true;
    wakeWaiter();
  };
  signal.addEventListener("abort", wake, { once: true });
  if (listenUrl !== null) void keepListening(listenUrl);

  async function keepListening(databaseUrl: string): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        await listen(databaseUrl, () => {
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        logger.warn({ name, code: nameError(error) }, "no notifications of changes: polling");
        await sleep(growingPauseMs(failures, longestPauseMs), undefined, { signal }).catch(() => {});
      }
    }
  }

  /** @throws when the connection ends */
  async function listen(databaseUrl: string, onListening: () => void): Promise<void> {
    const client = await connect(databaseUrl, `${name} (listening)`);
    try {
      const ended = once(client, "end", { signal });
      // It may reject before it is awaited.
      ended.catch(() => {});
      client.on("notification", wake);
      // PostgreSQL may not answer any more when the signal aborts.
      await Promise.race([client.query(`listen ${pg.escapeIdentifier(channelOf(schema))}`), ended]);
      onListening();
      // Changes may have come while nobody listened.
      wake();
      await ended;
      throw new Error("The connection ended.");
    } finally {
      disconnect(client);
    }
  }

  return {
    /**
     * Ends with the next notification, after the time, or when the signal aborts. A notification that has come since the
     * last wait counts.
     */
    async wait(limitMs: number): Promise<void> {
      const waiting = new AbortController();
      wakeWaiter = () => waiting.abort();
      if (!isWoken) await sleep(limitMs, undefined, { signal: waiting.signal }).catch(() => {});
      isWoken = false;
    },
  };
}
