import type { Logger } from "@booking-events/runtime";

/** How often a worker looks whether it is stuck. */
export const progressIntervalMs = 5_000;
/** Much longer than a batch may take: see `transaction-limits.ts` of the store. */
export const stuckAfterMs = 60_000;

interface Queue {
  readState(): Promise<{ waiting: number }>;
}

/**
 * Notices a worker that is stuck in a shard: events wait, PostgreSQL is available, the queue is not paused, and nothing
 * happens. This has been seen with queue workers whose blocking connection died unnoticed. The log, `/readyz` and a
 * metric report it. A restart fixes it, and loses nothing.
 */
export class ProgressWatch {
  readonly #queue: Queue;
  readonly #logger: Logger;
  #hasProgress = false;
  #progressAtMs = Number.NEGATIVE_INFINITY;
  #isStuck = false;

  constructor(queue: Queue, logger: Logger) {
    this.#queue = queue;
    this.#logger = logger;
  }

  /** Notes that a delivery has ended. */
  noteProgress(): void {
    this.#hasProgress = true;
  }

  /** Whether events are waiting, and none has been finished for {@link stuckAfterMs}. */
  isStuck(): boolean {
    return this.#isStuck;
  }

  /**
   * Looks once. The worker calls this every {@link progressIntervalMs}.
   *
   * @param isHeldUp whether there is a known reason for a standstill
   */
  async look(nowMs: number, isHeldUp: boolean): Promise<void> {
    // If Redis is down, that is reported elsewhere.
    const waiting = await this.#queue.readState().then(
      (state) => state.waiting,
      () => 0,
    );
    const hasReason = waiting === 0 || this.#hasProgress || isHeldUp;
    this.#hasProgress = false;
    if (hasReason || this.#progressAtMs === Number.NEGATIVE_INFINITY) this.#progressAtMs = nowMs;
    const isStuck = nowMs - this.#progressAtMs >= stuckAfterMs;
    if (isStuck && !this.#isStuck)
      this.#logger.error({ waiting }, "stuck: events are waiting, and none is finished. Restart this worker.");
    if (!isStuck && this.#isStuck) this.#logger.info("no longer stuck");
    this.#isStuck = isStuck;
  }
}
