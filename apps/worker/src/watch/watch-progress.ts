import { DelayDelivery } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";
import { AttemptFailed } from "../deliver/process-delivery.ts";

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
  /** Of `performance.now()`: the host's clock may be set. */
  #progressAtMs = Number.NEGATIVE_INFINITY;
  #isStuck = false;

  constructor(queue: Queue, logger: Logger) {
    this.#queue = queue;
    this.#logger = logger;
  }

  /**
   * Notes progress if the delivery ends with a decision about its event. A worker that is stuck may also fail each of its
   * deliveries at once, for example because it can't write dead letters.
   *
   * @throws what the delivery throws
   */
  async follow(delivery: Promise<void>): Promise<void> {
    try {
      await delivery;
      this.#hasProgress = true;
    } catch (error) {
      if (error instanceof AttemptFailed || error instanceof DelayDelivery) this.#hasProgress = true;
      throw error;
    }
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
  async look(isHeldUp: boolean): Promise<void> {
    const askedAtMs = performance.now();
    // If Redis is down, that is reported elsewhere.
    const waiting = await this.#queue.readState().then(
      (state) => state.waiting,
      () => 0,
    );
    const hasReason = waiting === 0 || this.#hasProgress || isHeldUp;
    this.#hasProgress = false;
    const nowMs = performance.now();
    if (hasReason || this.#progressAtMs === Number.NEGATIVE_INFINITY) this.#progressAtMs = nowMs;
    // Redis may answer after it has been restarted. Meanwhile, nobody could do anything.
    else this.#progressAtMs += nowMs - askedAtMs;
    const isStuck = nowMs - this.#progressAtMs >= stuckAfterMs;
    if (isStuck && !this.#isStuck)
      this.#logger.error({ waiting }, "stuck: events are waiting, and none is finished. Restart this worker.");
    if (!isStuck && this.#isStuck) this.#logger.info("no longer stuck");
    this.#isStuck = isStuck;
  }
}
