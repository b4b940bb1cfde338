import type { Logger } from "@booking-events/runtime";

export interface ProgressWatch {
  /** True while events wait, and none has come to an end for {@link stuckAfterMs}. */
  isStuck(): boolean;
  /** Looks once; the worker calls it every {@link lookIntervalMs}. */
  look(nowMs: number): Promise<void>;
}

export const lookIntervalMs = 5_000;
/** Far longer than a batch may take: see the limits of the store's `database.ts`. */
export const stuckAfterMs = 60_000;

/**
 * Notices a worker that has fallen asleep: events wait, PostgreSQL is there, and nothing happens. It has been seen with
 * queue workers whose blocking connection died unnoticed. It is said in the log, in `/readyz` and as a metric; a restart
 * mends it and loses nothing.
 *
 * @param options.countWaiting events that a worker could take now; rejects when Redis is down, which is said elsewhere
 * @param options.countFinished rises with each event that comes to an end
 * @param options.isWaitingForDatabase true while there is a known reason for standing still
 */
export function watchProgress(options: {
  countWaiting: () => Promise<number>;
  countFinished: () => number;
  isWaitingForDatabase: () => boolean;
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
      const hasReason = waiting === 0 || finished !== finishedBefore || options.isWaitingForDatabase();
      finishedBefore = finished;
      if (hasReason || progressAtMs === Number.NEGATIVE_INFINITY) progressAtMs = nowMs;
      const isStuckNow = nowMs - progressAtMs >= stuckAfterMs;
      if (isStuckNow && !stuck)
        options.logger.error({ waiting }, "stuck: events wait and none comes to an end. Restart this worker.");
      if (!isStuckNow && stuck) options.logger.info("no longer stuck");
      stuck = isStuckNow;
    },
  };
}
