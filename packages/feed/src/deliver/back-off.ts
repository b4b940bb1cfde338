import type { RetryPolicy } from "./consumer-options.ts";

/** Up to this part of a pause is left out by chance, so that not all who failed together come again together. */
const jitter = 0.2;

export const defaultRetryPolicy: RetryPolicy = {
  firstPauseMs: 5_000,
  longestPauseMs: 4 * 3_600_000,
  giveUpAfterMs: 3 * 24 * 3_600_000,
};

/**
 * | attempt | pause after it | since the first |
 * | ------- | -------------- | --------------- |
 * | 1       | 5 s            | 5 s             |
 * | 2       | 10 s           | 15 s            |
 * | 8       | 11 min         | 21 min          |
 * | 12      | 2 h 51 min     | 5 h 41 min      |
 * | 13      | 4 h            | 9 h 41 min      |
 * | 29      | none           | 3 days          |
 *
 * Time does not count, but attempts do: an outage in which none is made uses up nothing.
 *
 * @param attempts that have failed, from 1
 * @param chance from 0 to 1
 * @returns null: that was the last
 */
export function pauseAfter(attempts: number, policy: RetryPolicy, chance: number): number | null {
  let spentMs = 0;
  for (let attempt = 1; attempt < attempts; attempt += 1) spentMs += fullPauseMs(attempt, policy);
  if (spentMs >= policy.giveUpAfterMs) return null;
  return Math.round(fullPauseMs(attempts, policy) * (1 - jitter * chance));
}

function fullPauseMs(attempt: number, { firstPauseMs, longestPauseMs }: RetryPolicy): number {
  return Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);
}
