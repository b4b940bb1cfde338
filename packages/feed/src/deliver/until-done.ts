import { setTimeout as sleep } from "node:timers/promises";
import { type FeedLogger, nameError } from "../logger.ts";
import { growingPauseMs } from "../pauses.ts";

const longestPauseMs = 10_000;

/**
 * Does what needs PostgreSQL, again after growing pauses until it succeeds: PostgreSQL may be down for hours.
 *
 * @param options.isFinal whether an error would come again
 * @throws what is final; the signal's reason when it aborts
 */
export async function untilDone<Result>(
  work: () => Promise<Result>,
  options: { what: string; logger: FeedLogger; signal: AbortSignal; isFinal?: (error: unknown) => boolean },
): Promise<Result> {
  const { what, logger, signal, isFinal = () => false } = options;
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (isFinal(error)) throw error;
      if (!signal.aborted) logger.warn({ code: nameError(error) }, `could not ${what}: trying again`);
    }
    await sleep(growingPauseMs(failures, longestPauseMs), undefined, { signal });
  }
}
