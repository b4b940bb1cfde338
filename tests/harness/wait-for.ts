import { setTimeout as sleep } from "node:timers/promises";

const shortestPauseMs = 10;

/**
 * Waits until a condition neither throws nor returns false. Tests wait for conditions, never for time.
 *
 * @param options.intervalMs the longest pause between two looks. The first pauses are shorter: a tenth of the time that
 *   the condition has taken so far, so a short wait ends soon and a long one needs little CPU.
 * @returns the condition's last result
 * @throws when the time is up, with the condition's last failure
 */
export async function waitFor<Result>(
  condition: () => Result | Promise<Result>,
  { timeoutMs = 20_000, intervalMs = 100 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<WaitedFor<Result>> {
  const startedAt = Date.now();
  for (;;) {
    let failure: unknown = "it stayed false";
    try {
      const result = await condition();
      if (result !== false) return result as WaitedFor<Result>;
    } catch (error) {
      failure = error;
    }
    const waitedMs = Date.now() - startedAt;
    if (waitedMs >= timeoutMs) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      throw new Error(`The condition did not hold within ${timeoutMs} ms: ${reason}`, { cause: failure });
    }
    await sleep(Math.min(intervalMs, Math.max(shortestPauseMs, waitedMs / 10)));
  }
}

/** A condition that holds never returns false, and `true` carries no more information. */
type WaitedFor<Result> = Result extends false ? never : Result extends true ? undefined : Result;
