import type { Logger } from "@booking-events/runtime";

export interface PauseWatch {
  /** Whether the queue was paused when the worker last looked. */
  isPaused(): boolean;
  /** Says how to go on while the queue is paused. */
  findWarnings(): string[];
  /**
   * Looks once. The worker calls this every {@link pauseIntervalMs}.
   *
   * @throws if Redis does not answer, which is reported elsewhere
   */
  look(): Promise<void>;
}

export const pauseIntervalMs = 1_000;

/**
 * Reports that an operator has paused the queue, in the log and in the warnings of `/readyz`. The worker is still ready:
 * a restart would not help.
 */
export function watchPause(options: { readPaused: () => Promise<boolean>; logger: Logger }): PauseWatch {
  let isPaused = false;
  return {
    isPaused: () => isPaused,
    findWarnings: () =>
      isPaused ? ["An operator has paused the queue: events wait in Redis. To go on: npm run ops -- queue resume"] : [],
    async look() {
      const wasPaused = isPaused;
      isPaused = await options.readPaused();
      if (isPaused && !wasPaused) options.logger.warn("the queue is paused: no events are taken until it is resumed");
      if (!isPaused && wasPaused) options.logger.info("the queue is resumed");
    },
  };
}
