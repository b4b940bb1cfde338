import { setTimeout as sleep } from "node:timers/promises";
import type { EventQueue } from "../events/event-job.ts";
import type { HeldEvents } from "./held-events.ts";

/** Limits how long Redis answers nobody else. */
const locksPerCall = 500;

/**
 * Renews the locks of the events that a process holds until the signal aborts, instead of BullMQ's workers. Those wait
 * up to half of a lock's duration, which is the interval of the search for stalled events. A live worker could then
 * seem dead, and the events of a dead worker would have to wait for it (`move-stalled-events.ts`).
 */
export async function keepLocks(options: {
  held: HeldEvents;
  queue: EventQueue;
  lockDurationMs: number;
  onError: (error: Error) => void;
  signal: AbortSignal;
}): Promise<void> {
  const { held, queue, lockDurationMs, onError, signal } = options;
  // Two renewals may fail before a lock expires.
  const intervalMs = lockDurationMs / 4;
  for (;;) {
    const isOver = await sleep(intervalMs, false, { signal, ref: false }).catch(() => true);
    if (isOver) return;
    const jobs = [...held.locked()];
    const [oldest] = jobs;
    // A busy worker finishes its events long before their locks need renewal.
    if (oldest === undefined || Date.now() - (oldest.processedOn ?? 0) < intervalMs) continue;
    const chunks = Array.from({ length: Math.ceil(jobs.length / locksPerCall) }, (_, index) =>
      jobs.slice(index * locksPerCall, (index + 1) * locksPerCall),
    );
    const calls = chunks.map((chunk) => {
      const [ids, tokens] = [chunk.map(({ id = "" }) => id), chunk.map(({ token = "" }) => token)];
      return queue.backend.extendLocks(ids, tokens, lockDurationMs);
    });
    try {
      const lost = (await Promise.all(calls)).flat();
      if (lost.length > 0) onError(new Error(`${lost.length} events have lost their locks: others may have them too.`));
    } catch (error) {
      onError(error instanceof Error ? error : new Error("The locks could not be renewed.", { cause: error }));
    }
  }
}
