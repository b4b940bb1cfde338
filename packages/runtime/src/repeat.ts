import { setTimeout as sleep } from "node:timers/promises";

/**
 * Does the work again and again until the signal aborts: the first time after the interval, and then each time the
 * interval after the last time ended.
 *
 * @param work must not throw: nobody would do it again
 */
export async function repeat(work: () => void | Promise<void>, intervalMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(intervalMs, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await work();
  }
}
