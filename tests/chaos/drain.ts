import { setTimeout as sleep } from "node:timers/promises";
import { type QueueCounts, sumCounts } from "./count-queue.ts";

const lookIntervalMs = 500;
/** How long the queue must stay empty: an add that was under way when its ingest was frozen may still come. */
const emptyForMs = 2_000;
/** A delivery comes back some 15 s after its worker was killed, and the longest retry by chance is not much later. */
const defaultStandstillMs = 90_000;

/**
 * Waits until nothing is left in the queue. Drained in time is never asked, only that it goes on.
 *
 * @param countApplied rises with each event that comes to its end
 * @param options.standstillMs for so long nothing need move: longer than the longest delay of a retry
 * @returns undefined, or a sentence that says what is left when nothing has moved for long
 */
export async function drain(options: {
  countQueue: () => Promise<QueueCounts | null>;
  countApplied: () => number;
  standstillMs?: number;
  signal: AbortSignal;
}): Promise<string | undefined> {
  const { countQueue, countApplied, standstillMs = defaultStandstillMs, signal } = options;
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
