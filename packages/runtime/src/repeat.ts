import { setTimeout as sleep } from "node:timers/promises";

/**
 * Repeats the work until the signal aborts. The first run starts after the interval, and each other run one interval
 * after the previous one has ended.
 *
 * @param work must not throw, because the repetition would end
 */
export async function repeat(work: () => void | Promise<void>, intervalMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(intervalMs, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await work();
  }
}

/**
 * Starts to repeat the work, of which the first run starts now.
 *
 * @param work reports by itself if it fails, and is repeated all the same
 */
export function keepDoing(work: () => Promise<void>, intervalMs: number, signal: AbortSignal): void {
  const attempt = () => work().catch(() => {});
  void attempt().then(() => repeat(attempt, intervalMs, signal));
}

const tryAgainMs = 20;

/** Tries the work until it succeeds, the time is over, or the signal aborts. @param work reports by itself if it fails */
export async function tryFor(limitMs: number, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const giveUpAtMs = performance.now() + limitMs;
  const attempt = () =>
    work().then(
      () => true,
      () => signal.aborted || performance.now() > giveUpAtMs,
    );
  while (!(await attempt())) await sleep(tryAgainMs);
}
