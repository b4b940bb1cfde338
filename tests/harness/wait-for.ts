import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits until a condition neither throws nor returns false. Tests wait for conditions, never for time.
 *
 * @returns the condition's last result
 * @throws when the time is up, with the condition's last failure
 */
export async function waitFor<Result>(
  condition: () => Result | Promise<Result>,
  { timeoutMs = 20_000, intervalMs = 20 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<WaitedFor<Result>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let failure: unknown = "it stayed false";
    try {
      const result = await condition();
      if (result !== false) return result as WaitedFor<Result>;
    } catch (error) {
      failure = error;
    }
    if (Date.now() >= deadline) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      throw new Error(`The condition did not hold within ${timeoutMs} ms: ${reason}`, { cause: failure });
    }
    await sleep(intervalMs);
  }
}

/** A condition that holds never returns false, and `true` carries no more information. */
type WaitedFor<Result> = Result extends false ? never : Result extends true ? undefined : Result;
