import {
  type Consumer,
  type createConsumer,
  type HoldLimits,
  type QueueLocation,
  workerHeartbeatIntervalMs,
} from "@booking-events/queue";
import { keepDoing, type Logger, version } from "@booking-events/runtime";
import { processDelivery, type Worker } from "../deliver/process-delivery.ts";
import { sweepGivenUp, sweepIntervalMs } from "../deliver/sweep-given-up.ts";
import { ProgressWatch, progressIntervalMs } from "../watch/watch-progress.ts";
import type { ServedShard } from "./serve-shards.ts";

interface WorkerShardParts {
  location: QueueLocation;
  limits: HoldLimits;
  createConsumer: typeof createConsumer;
  worker: Worker;
  isDatabaseOut: () => boolean;
  isPaused: () => boolean;
  /** Called whenever the connection is ready. */
  onConnected: () => void;
  logger: Logger;
}

/** One shard of the queue: passes its events on to the worker, and sees that none is left lying. */
export class WorkerShard implements ServedShard {
  readonly consumer: Consumer;
  readonly #parts: WorkerShardParts;
  readonly #progress: ProgressWatch;
  readonly #draining = new AbortController();
  #isOpen = false;

  constructor(parts: WorkerShardParts) {
    const { location, limits, logger } = parts;
    this.#parts = parts;
    this.consumer = parts.createConsumer({
      ...location,
      ...limits,
      version,
      handle: (delivery) => this.#progress.follow(processDelivery(delivery, this.consumer, parts.worker)),
      onError: (error) => logger.debug({ err: error }, "lost Redis: the queue reconnects by itself"),
      onMissingJob: (eventId) =>
        logger.error({ eventId }, "dropped an event from the queue, since Redis has only its id"),
    });
    this.consumer.onConnected(parts.onConnected);
    this.#progress = new ProgressWatch(this.consumer, logger);
  }

  isStuck(): boolean {
    return this.#progress.isStuck();
  }

  /** Starts what is done regularly. Events are taken once the shard is opened. */
  start(): void {
    const { worker, isDatabaseOut, isPaused } = this.#parts;
    const { signal } = this.#draining;
    const isHeldUp = () => !this.#isOpen || isPaused();
    keepDoing(async () => (this.#isOpen ? this.consumer.recordAlive() : undefined), workerHeartbeatIntervalMs, signal);
    keepDoing(() => this.#progress.look(isDatabaseOut() || isHeldUp()), progressIntervalMs, signal);
    keepDoing(async () => (isHeldUp() ? undefined : sweepGivenUp(this.consumer, worker)), sweepIntervalMs, signal);
  }

  open(database: string): void {
    if (this.#draining.signal.aborted) return;
    // Again if it is open: the script that takes events may have found another database for a moment.
    this.consumer.start(database);
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.consumer.recordAlive().catch(() => {});
    // Not only at the next interval: what a worker gave up because it died waits for the next start.
    if (!this.#parts.isPaused()) void sweepGivenUp(this.consumer, this.#parts.worker);
  }

  close(): void {
    this.#isOpen = false;
    this.consumer.halt("database", true);
  }

  drain(): Promise<void> {
    this.#draining.abort();
    return this.consumer.drain();
  }
}
