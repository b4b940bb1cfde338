import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@booking-events/runtime";
import { channelOfSubscriptions } from "@booking-events/store";
import { listenTo } from "../listen-to.ts";

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
  const { look, signal, pollIntervalMs = defaultPollIntervalMs, schema, ...connection } = watch;
  let waiting = new AbortController();
  listenTo({ ...connection, signal, channel: channelOfSubscriptions(schema), onNotification: () => waiting.abort() });
  while (!signal.aborted) {
    // From now on, a notification ends the wait, also one that comes during the look.
    waiting = new AbortController();
    await look();
    const woken = AbortSignal.any([signal, waiting.signal]);
    await sleep(pollIntervalMs, undefined, { signal: woken }).catch(() => {});
  }
}
