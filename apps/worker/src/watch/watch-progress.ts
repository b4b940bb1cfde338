import type { Logger } from "@booking-events/runtime";

export interface ProgressWatch {
  /** Whether events are waiting, and none has been finished for {@link stuckAfterMs}. */
  isStuck(): boolean;
  /** Looks once. The worker calls this every {@link lookIntervalMs}. */
  look(nowMs: number): Promise<void>;
}

export const lookIntervalMs = 5_000;
/** Much longer than a batch may take: see the limits in `database.ts` of the store. */
export const stuckAfterMs = 60_000;

/**
 * Notices a worker that is stuck in a shard: events wait, PostgreSQL is available, the queue is not paused, and nothing
 * happens. This has been seen with queue workers whose blocking connection died unnoticed. The log, `/readyz` and a metric report it. A restart fixes
 * it, and loses nothing.
 *
 * @param options.countWaiting counts events that a worker could take now; rejects if Redis is down, which is reported
 *   elsewhere
 * @param options.countFinished a number that grows with each event that is finished
 * @param options.isWaitingForDatabase whether there is a known reason for the standstill
 * @param options.isPaused the same
 */
export function watchProgress(options: {
  countWaiting: () => Promise<number>;
  countFinished: () => number;
  isWaitingForDatabase: () => boolean;
  isPaused: () => boolean;
  logger: Logger;
}): ProgressWatch {
  let finishedBefore = options.countFinished();
  let progressAtMs = Number.NEGATIVE_INFINITY;
  let stuck = false;

  return {
    isStuck: () => stuck,
    async look(nowMs) {
      const waiting = await options.countWaiting().catch(() => 0);
      const finished = options.countFinished();
      const isHeldUp = options.isWaitingForDatabase() || options.isPaused();
      const hasReason = waiting === 0 || finished !== finishedBefore || isHeldUp;
      finishedBefore = finished;
      if (hasReason || progressAtMs === Number.NEGATIVE_INFINITY) progressAtMs = nowMs;
      const isStuckNow = nowMs - progressAtMs >= stuckAfterMs;
      if (isStuckNow && !stuck)
        options.logger.error({ waiting }, "stuck: events are waiting, and none is finished. Restart this worker.");
      if (!isStuckNow && stuck) options.logger.info("no longer stuck");
      stuck = isStuckNow;
    },
  };
}
