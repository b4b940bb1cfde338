import { setTimeout as sleep } from "node:timers/promises";
import { DelayedError, type Job, raw2NextJobData, UnrecoverableError, WaitingError, type WorkerOptions } from "bullmq";
import { Redis } from "ioredis";
import { EventJob, EventQueue, EventWorker, type JobContent } from "./event-job.ts";
import { createGiveBack } from "./give-back-events.ts";
import { createHeldEvents } from "./held-events.ts";
import { keepLocks } from "./keep-locks.ts";
import { queueName, replayJobName } from "./queue-name.ts";
import { maxAttempts, retryDelayMs } from "./retry-policy.ts";
import { createSweep, type GivenUpEvent, type Verdict } from "./sweep-failed.ts";
import { createWorkerBackend } from "./worker-backend.ts";

/** One delivery of an event. It may be the first, a retry, or the same again after a crash. */
export interface Delivery {
  /** What came out of Redis, as it came: it need not be an envelope, nor JSON. Redis is a boundary. */
  text: string;
  /**
   * Events with the same subject are about the same booking, so that they can be handled together, one after the other.
   * Events with different ones may be too: only what the text says decides.
   */
  subject: string;
  /** The event's id as the queue knows it, for an event whose data can't be read. */
  jobId: string;
  /** This attempt's number, from 1. */
  attempt: number;
  isLastAttempt: boolean;
  /** An operator has put the event back after it had been given up. */
  isReplay: boolean;
  /** Epoch milliseconds at which ingest queued the event. */
  queuedAtMs: number;
  /**
   * What of the job around the text can't be read, as a sentence without any value; null: nothing. Then the text is all
   * that is known of the event.
   */
  damage: string | null;
}

export interface Consumer {
  /** Starts to take deliveries. Waits for Redis without limit, and reconnects by itself. */
  start(): void;
  isConnected(): boolean;
  /** Events in the queue, apart from those that are being handled. */
  countBacklog(): Promise<{ waiting: number; delayed: number }>;
  /**
   * Goes through the events that BullMQ has given up by itself, as it does with one that was active too often when its
   * worker died, or when Redis stood still for so long that the worker seemed to have died. Each stays in Redis until
   * `judge` says what is to become of it. One that can't be dealt with keeps none of the others waiting.
   *
   * @param sweeping.onFault told of what `judge` threw; returns whether to go on with the others
   * @returns how many were dealt with
   */
  sweepFailed(sweeping: {
    judge: (event: GivenUpEvent<Delivery>) => Promise<Verdict>;
    onFault: (jobId: string, error: unknown) => boolean;
  }): Promise<number>;
  /**
   * What the delivery's text was in Redis, byte for byte: where it is not UTF-8, something else than ingest has written
   * it, and U+FFFD stands in the text for what could not be read. Ask while the delivery is handled or judged.
   */
  readBytes(delivery: Pick<Delivery, "jobId" | "text">): Promise<Buffer>;
  /** Takes no more deliveries and resolves when the active ones are done. Without limit: the caller sets one. */
  drain(): Promise<void>;
  /** Closes the connections, whatever is active. */
  close(): Promise<void>;
}

/**
 * Thrown by a handler that was told to stop before it could apply the event: the event goes back to the head of the
 * queue, and no attempt is counted. Events that go back while the consumer drains keep their order.
 */
export class ReleaseDelivery extends Error {
  override name = "ReleaseDelivery";
}

/** Thrown by a handler to have the event delivered again after a while. No attempt is counted, and others go before it. */
export class DelayDelivery extends Error {
  override name = "DelayDelivery";
  readonly delayMs: number;

  constructor(delayMs: number) {
    super("The event is to be delivered again later.");
    this.delayMs = delayMs;
  }
}

/**
 * How long a delivery stays with a worker that shows no sign of life, and how often others look for such deliveries.
 * BullMQ's 30 s each would delay recovery needlessly.
 */
const defaultRecovery = { lockDurationMs: 10_000, stalledCheckIntervalMs: 5_000 };
/**
 * How often an event may be active while its worker dies, or seems to. Then it is tried alone, by a sweep: before, it
 * shared its deaths with all that its worker held.
 */
const maxStalledCount = 25;
const longestReconnectDelayMs = 1_000;
/**
 * A BullMQ worker fetches jobs one after the other, each in a round trip with a write to disk, and begins to process
 * them when it has as many as it may hold, or the queue is empty. With one worker that may hold 1,000, events of a busy
 * queue waited for up to 0.7 s before anything was done for them; so smaller ones share the work.
 */
const eventsPerLoop = 100;
/**
 * How long events that are to go back wait for the others, while the consumer drains: one that goes back later goes in
 * front of them, and need not be older. What takes longer waits for a database that does not answer.
 */
const releasePatienceMs = 1_000;
/** BullMQ's own event stream; nothing of ours reads it, so it is kept short. */
const bullmqEventsKept = 1_000;
/** A Redis that vanished without closing the connection. Longer than the longest blocking read, which is 10 s. */
const socketTimeoutMs = 30_000;

/**
 * @param options.concurrency how many events are held at most
 * @param options.maxHeldBytes how much memory their text may take. It is exceeded by one event for each fetch under way
 *   at most, and an event that is larger by itself is held alone
 * @param options.handle applies one event. It returns when the event needs no further delivery, and throws an error
 *   whose message holds nothing of the event, since BullMQ keeps it in Redis, to have the event delivered again later.
 * @param options.onError told of connection errors and of failures inside BullMQ
 * @param options.onGone told of an id in the queue that had no job, and was dropped
 */
export function createConsumer(options: {
  redisUrl: string;
  prefix: string;
  concurrency: number;
  maxHeldBytes: number;
  handle: (delivery: Delivery) => Promise<void>;
  onError: (error: Error) => void;
  onGone?: (jobId: string) => void;
  recovery?: { lockDurationMs: number; stalledCheckIntervalMs: number };
}): Consumer {
  const { onGone = () => {} } = options;
  const { lockDurationMs, stalledCheckIntervalMs } = options.recovery ?? defaultRecovery;
  // A worker waits for Redis as long as it takes. No commandTimeout: it would hit the blocking read for the next job.
  const redis = new Redis(options.redisUrl, {
    connectionName: "booking-events-worker",
    maxRetriesPerRequest: null,
    socketTimeout: socketTimeoutMs,
    retryStrategy: (attempt) => Math.min(attempt * 100, longestReconnectDelayMs),
  });
  redis.on("error", options.onError);
  const giveBack = createGiveBack(redis, options.prefix);
  const closing = new AbortController();
  /** While the consumer drains: all that is to go back can go together. */
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
      held.letGo(job);
    }
  }

  /** @throws WaitingError, by which BullMQ learns that the job is not its business any more */
  async function release(job: Job<JobContent>, token: string): Promise<never> {
    held.settle(job);
    await allSettled;
    held.letGo(job);
    // Only an operator can have given it one.
    if (job.priority > 0) await job.moveToWait(token);
    else await giveBack({ jobId: job.id ?? "", token });
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
    onGone,
  });
  const workers = Array.from({ length: loops }, (_, index) => {
    // As even as can be; the sum is what was asked for.
    const concurrency = Math.floor((options.concurrency + index) / loops);
    return new EventWorker(queueName, handleJob, {
      ...workerOptions,
      concurrency,
      createBackend,
      onFetched: held.hold,
    });
  });
  for (const worker of workers) worker.on("error", options.onError);
  // Waits for Redis as long as the worker does; adds nothing.
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
      ...{ redis, prefix: options.prefix, onGone },
      toDelivery(fields, jobId) {
        const job = EventJob.fromJSON<JobContent, unknown, string>(
          queue,
          raw2NextJobData([fields, jobId, 0, 0])[0],
          jobId,
        );
        // BullMQ has counted that it gave the event up as an attempt.
        return toDelivery(job, Math.max(1, job.attemptsMade));
      },
    }),
    async readBytes({ jobId, text }) {
      const mayBeDamaged = text.includes("\uFFFD");
      const job = `${options.prefix}:${queueName}:${jobId}`;
      // The job is gone when another worker has brought it to its end meanwhile.
      return (mayBeDamaged ? await redis.hgetBuffer(job, "data") : null) ?? Buffer.from(text);
    },
    async drain() {
      held.stop();
      allSettled ??= Promise.race([held.whenSettled(), sleep(releasePatienceMs, undefined, { ref: false })]);
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

/** BullMQ stores an error's message and stack; a thrown value that is no error would leave the job stuck. */
function toStorableError(error: unknown): Error {
  return error instanceof Error ? error : new UnrecoverableError("The handler threw something that is not an error.");
}
