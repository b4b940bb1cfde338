import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { keepDoing, type Logger } from "@booking-events/runtime";
import { channelOfSubscriptions, withOwnConnection } from "@booking-events/store";
import pg from "pg";

/** So long a change of a subscription can go unnoticed if its notification is lost. */
const defaultPollIntervalMs = 5_000;

interface Watch {
  databaseUrl: string;
  schema: string;
  /** Called at the start, when a subscription has changed, and regularly. Reports by itself if it fails. */
  look: () => Promise<void>;
  logger: Logger;
  signal: AbortSignal;
  pollIntervalMs?: number;
}

/** Looks at the subscriptions until the signal aborts. One look ends before the next begins. */
export async function watchSubscriptions(watch: Watch): Promise<void> {
  const { look, signal, pollIntervalMs = defaultPollIntervalMs } = watch;
  let waiting = new AbortController();
  keepDoing(() => listen(watch, () => waiting.abort()), pollIntervalMs, signal);
  while (!signal.aborted) {
    // From now on, a notification ends the wait, also one that comes during the look.
    waiting = new AbortController();
    await look();
    const woken = AbortSignal.any([signal, waiting.signal]);
    await sleep(pollIntervalMs, undefined, { signal: woken }).catch(() => {});
  }
}

/** Resolves when the connection has ended. */
async function listen({ databaseUrl, schema, logger, signal }: Watch, wake: () => void): Promise<void> {
  try {
    await withOwnConnection(databaseUrl, "booking-events-webhooks (listening)", async (client) => {
      const ended = once(client, "end", { signal });
      // It may reject before it is awaited.
      ended.catch(() => {});
      client.on("notification", wake);
      await client.query(`listen ${pg.escapeIdentifier(channelOfSubscriptions(schema))}`);
      // Something may have changed while nobody listened.
      wake();
      await ended;
    });
  } catch (error) {
    if (!signal.aborted) logger.debug({ err: error }, "no notifications of subscriptions: polling");
  }
}
