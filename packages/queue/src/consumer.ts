import { setTimeout as sleep } from "node:timers/promises";
import { DelayedError, type Job, raw2NextJobData, UnrecoverableError, WaitingError, type WorkerOptions } from "bullmq";
import { Redis } from "ioredis";
import { EventJob, EventQueue, EventWorker, type JobContent } from "./event-job.ts";
import { createHeldEvents } from "./held-events.ts";
import { keepLocks } from "./keep-locks.ts";
import { queueName, replayJobName } from "./queue-name.ts";
import { createEventReleaser } from "./release-events.ts";
import { maxAttempts, retryDelayMs } from "./retry-policy.ts";
import { createSweep, type GivenUpEvent, type Verdict } from "./sweep-failed.ts";
import { createWorkerBackend } from "./worker-backend.ts";

/** A delivery of an event: the first one, a retry, or a repetition after a crash. */
export interface Delivery {
  /** The unchanged text from Redis. Redis is a boundary, so it may not be an envelope, or even JSON. */
  text: string;
  /**
   * Events with the same subject are usually about the same booking, and can be processed together in order. Events
   * with different subjects may be about the same booking too: only the text decides.
   */
  subject: string;
  /** The event's id in the queue, for an event whose data cannot be read. */
  jobId: string;
  /** The number of this attempt, starting at 1. */
  attempt: number;
  isLastAttempt: boolean;
  /** Whether an operator put the event back after it had failed. */
  isReplay: boolean;
  /** When ingest queued the event, in epoch milliseconds. */
  queuedAtMs: number;
  /**
   * Which part of the job around the text is damaged, as a sentence without any values; null if none is. If there is
   * damage, the text is all that is known about the event.
   */
  damage: string | null;
}

export interface Consumer {
  /** Starts to process deliveries. Waits for Redis without limit, and reconnects by itself. */
  start(): void;
  isConnected(): boolean;
  /** The number of events in the queue, without those being handled. */
  countBacklog(): Promise<{ waiting: number; delayed: number }>;
  /**
   * Processes the events that BullMQ has moved to the failed set by itself. It does so when an event was active too
   * often while its worker died, or while Redis was frozen so long that the worker seemed dead. Each event stays in
   * Redis until `judge` decides what happens to it. An event that cannot be handled does not delay the others.
   *
   * @param sweeping.onFault called with what `judge` threw; returns whether to continue with the other events
   * @returns the number of handled events
   */
  sweepFailed(sweeping: {
    judge: (event: GivenUpEvent<Delivery>) => Promise<Verdict>;
    onFault: (jobId: string, error: unknown) => boolean;
  }): Promise<number>;
  /**
   * Returns the delivery's text as the bytes in Redis. If they are not UTF-8, another program wrote them, and the text
   * has U+FFFD where they could not be decoded. Call this while the delivery is being handled or judged.
   */
  readBytes(delivery: Pick<Delivery, "jobId" | "text">): Promise<Buffer>;
  /**
   * Accepts no more deliveries, and resolves when the active ones are done. There is no time limit; the caller sets
   * one.
   */
  drain(): Promise<void>;
  /** Closes the connections even if deliveries are active. */
  close(): Promise<void>;
}

/**
 * Thrown by a handler that was told to stop before it could apply the event. The event goes back to the head of the
 * queue, and no attempt is counted. Events released while the consumer drains keep their order.
 */
export class ReleaseDelivery extends Error {
  override name = "ReleaseDelivery";
}

/**
 * Thrown by a handler to have the event delivered again after a delay. No attempt is counted, and other events are
 * delivered in the meantime.
 */
export class DelayDelivery extends Error {
  override name = "DelayDelivery";
  readonly delayMs: number;

  constructor(delayMs: number) {
    super("The event will be delivered again later.");
    this.delayMs = delayMs;
  }
}

/**
 * How long a delivery stays with a worker that shows no sign of life, and how often other workers check for such
 * deliveries. BullMQ's default of 30 s for each would delay recovery unnecessarily.
 */
const defaultRecovery = { lockDurationMs: 10_000, stalledCheckIntervalMs: 5_000 };
/**
 * How often an event may be active while its worker dies or seems to die. Then a sweep tries it alone, because until
 * then any event that the worker held could have caused these deaths.
 */
const maxStalledCount = 25;
const longestReconnectDelayMs = 1_000;
/**
 * A BullMQ worker fetches jobs one at a time, each with a round trip and a write to disk, and starts to process them
 * when it holds its maximum or the queue is empty. With one worker that could hold 1,000 events, events of a busy queue
 * waited up to 0.7 s before any work on them. Therefore several smaller workers share the work.
 */
const eventsPerLoop = 100;
/**
 * How long released events wait for the others while the consumer drains. An event released later is placed before them
 * although it may be newer. An event that takes longer waits for a database that does not answer.
 */
const releaseWaitMs = 1_000;
/** The length of BullMQ's event stream, which we do not read. */
const bullmqEventsKept = 1_000;
/**
 * After this time without a byte, Redis is assumed to have disappeared without closing the connection. Longer than the
 * longest blocking read, which is 10 s.
 */
const socketTimeoutMs = 30_000;

/**
 * @param options.concurrency the maximum number of events held
 * @param options.maxHeldBytes the maximum memory for their text. It is exceeded by at most one event for each fetch in
 *   progress, and an event larger than the limit is held alone
 * @param options.handle applies one event. It returns when the event needs no further delivery, and throws to have it
 *   delivered again later. The error's message must contain nothing of the event, because BullMQ stores it in Redis
 * @param options.onError called for connection errors and failures inside BullMQ
 * @param options.onMissingJob called with an id in the queue that had no job and was removed
 */
export function createConsumer(options: {
  redisUrl: string;
  prefix: string;
  concurrency: number;
  maxHeldBytes: number;
  handle: (delivery: Delivery) => Promise<void>;
  onError: (error: Error) => void;
  onMissingJob?: (jobId: string) => void;
  recovery?: { lockDurationMs: number; stalledCheckIntervalMs: number };
}): Consumer {
  const { onMissingJob = () => {} } = options;
  const { lockDurationMs, stalledCheckIntervalMs } = options.recovery ?? defaultRecovery;
  // A worker waits for Redis without limit. A commandTimeout would also end the blocking read for the next job.
  const redis = new Redis(options.redisUrl, {
    connectionName: "booking-events-worker",
    maxRetriesPerRequest: null,
    socketTimeout: socketTimeoutMs,
    retryStrategy: (attempt) => Math.min(attempt * 100, longestReconnectDelayMs),
  });
  redis.on("error", options.onError);
  const releaseEvent = createEventReleaser(redis, options.prefix);
  const closing = new AbortController();
  /** Set while the consumer drains: resolves when all released events can go back together. */
  let allSettled: Promise<unknown> | undefined;

  async function handleJob(job: Job<JobContent>, token = ""): Promise<void> {
    try {
      await options.handle(toDelivery(job));
    } catch (error) {
      if (error instanceof ReleaseDelivery) return await release(job, token);
      if (error instanceof DelayDelivery) {
        await job.moveToDelayed(Date.now() + error.delayMs, token);
        throw new DelayedError();
      }
      throw toStorableError(error);
    } finally {
      held.remove(job);
    }
  }

  /** @throws WaitingError, which tells BullMQ to leave the job alone */
  async function release(job: Job<JobContent>, token: string): Promise<never> {
    held.settle(job);
    await allSettled;
    held.remove(job);
    // Only an operator can have set a priority.
    if (job.priority > 0) await job.moveToWait(token);
    else await releaseEvent({ jobId: job.id ?? "", token });
    throw new WaitingError();
  }

  const loops = Math.ceil(options.concurrency / eventsPerLoop);
  const workerOptions: WorkerOptions = {
    connection: redis,
    prefix: options.prefix,
    autorun: false,
    lockDuration: lockDurationMs,
    skipLockRenewal: true,
    stalledInterval: stalledCheckIntervalMs,
    maxStalledCount,
    settings: { backoffStrategy: (attemptsMade) => retryDelayMs(attemptsMade) },
  };
  const held = createHeldEvents({ maxBytes: options.maxHeldBytes });
  const createBackend = createWorkerBackend({
    ...{ redis, prefix: options.prefix, lockDurationMs, held },
    stalled: { maxStalledCount, stalledCheckIntervalMs },
    onMissingJob,
  });
  const workers = Array.from({ length: loops }, (_, index) => {
    // As evenly as possible; the sum is the requested concurrency.
    const concurrency = Math.floor((options.concurrency + index) / loops);
    return new EventWorker(queueName, handleJob, {
      ...workerOptions,
      concurrency,
      createBackend,
      onFetched: held.hold,
    });
  });
  for (const worker of workers) worker.on("error", options.onError);
  // Waits for Redis like the worker; adds no events.
  const queue = new EventQueue(queueName, {
    connection: redis,
    prefix: options.prefix,
    streams: { events: { maxLen: bullmqEventsKept } },
  });
  queue.on("error", options.onError);

  return {
    start() {
      for (const worker of workers) worker.run().catch(options.onError);
      void keepLocks({
        locked: held.locked,
        renew: (jobIds, tokens) => queue.backend.extendLocks(jobIds, tokens, lockDurationMs),
        lockDurationMs,
        onError: options.onError,
        signal: closing.signal,
      });
    },
    isConnected: () => redis.status === "ready",
    async countBacklog() {
      const { waiting = 0, delayed = 0 } = await queue.getJobCounts("waiting", "delayed");
      return { waiting, delayed };
    },
    sweepFailed: createSweep({
      ...{ redis, prefix: options.prefix, onMissingJob },
      toDelivery(fields, jobId) {
        const job = EventJob.fromJSON<JobContent, unknown, string>(
          queue,
          raw2NextJobData([fields, jobId, 0, 0])[0],
          jobId,
        );
        // BullMQ counted moving the job to the failed set as an attempt.
        return toDelivery(job, Math.max(1, job.attemptsMade));
      },
    }),
    async readBytes({ jobId, text }) {
      const mayBeDamaged = text.includes("\uFFFD");
      const job = `${options.prefix}:${queueName}:${jobId}`;
      // The job is missing if another worker has finished it in the meantime.
      return (mayBeDamaged ? await redis.hgetBuffer(job, "data") : null) ?? Buffer.from(text);
    },
    async drain() {
      held.stop();
      allSettled ??= Promise.race([held.whenSettled(), sleep(releaseWaitMs, undefined, { ref: false })]);
      await Promise.all(workers.map((worker) => worker.pause()));
    },
    async close() {
      held.stop();
      closing.abort();
      await Promise.all(workers.map((worker) => worker.close(true)));
      redis.disconnect();
    },
  };
}

function toDelivery(job: Job<JobContent>, attempt = job.attemptsMade + 1): Delivery {
  return {
    text: job.data.text,
    subject: job.data.subject,
    jobId: job.id ?? "",
    attempt,
    isLastAttempt: attempt >= (job.opts.attempts ?? maxAttempts),
    isReplay: job.name === replayJobName,
    queuedAtMs: job.timestamp,
    damage: job.data.damage,
  };
}

/** BullMQ stores an error's message and stack. A thrown value that is not an error would leave the job stuck. */
function toStorableError(error: unknown): Error {
  return error instanceof Error ? error : new UnrecoverableError("The handler threw something that is not an error.");
}
