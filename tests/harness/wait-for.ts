import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits until a condition holds: until it neither throws nor is false. Tests wait for conditions, never for time.
 *
 * @returns what the condition resolved to at last
 * @throws when the time is up, with the condition's last failure
 */
export async function waitFor<Result>(
  condition: () => Result | Promise<Result>,
  { timeoutMs = 10_000, intervalMs = 20 }: { timeoutMs?: number; intervalMs?: number } = {},
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
      throw new Error(`The condition did not come true within ${timeoutMs} ms: ${reason}`, { cause: failure });
    }
    await sleep(intervalMs);
  }
}

/** What remains of a condition's results when it holds: a mere `true` tells nothing more. */
type WaitedFor<Result> = Result extends false ? never : Result extends true ? undefined : Result;
