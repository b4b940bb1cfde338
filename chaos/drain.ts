import { setTimeout as sleep } from "node:timers/promises";
import { type QueueCounts, sumCounts } from "./count-queue.ts";

const lookIntervalMs = 500;
/** How long the queue must stay empty: an add that was under way when its ingest was frozen may still come. */
const emptyForMs = 2_000;
/**
 * Drained in time is never asked, only that it goes on. A delivery comes back some 15 s after its worker was killed, and
 * the longest retry that happens by chance is not much later.
 */
const standstillMs = 90_000;

/**
 * Waits until nothing is left in the queue.
 *
 * @param countApplied rises with each event that comes to its end
 * @returns undefined, or a sentence that says what is left when nothing has moved for long
 */
export async function drain(options: {
  countQueue: () => Promise<QueueCounts | null>;
  countApplied: () => number;
  signal: AbortSignal;
}): Promise<string | undefined> {
  const { countQueue, countApplied, signal } = options;
  let last = "";
  let movedAtMs = performance.now();
  for (;;) {
    const counts = await countQueue();
    const seen = JSON.stringify([counts, countApplied()]);
    if (seen !== last) movedAtMs = performance.now();
    last = seen;
    const stillForMs = performance.now() - movedAtMs;
    if (counts !== null && sumCounts(counts) === 0 && stillForMs >= emptyForMs) return undefined;
    if (stillForMs >= standstillMs) {
      const left = counts === null ? "Redis does not answer" : `left in the queue: ${JSON.stringify(counts)}`;
      return `nothing moved for ${standstillMs / 1_000} s; ${left}`;
    }
    await sleep(lookIntervalMs, undefined, { signal });
  }
}
