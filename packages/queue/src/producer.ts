import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { type AcceptedEvent, createEventAdder, serializeEvent } from "./add-events.ts";
import { gatherPerTurn } from "./gather-per-turn.ts";
import { jobOptions } from "./job-options.ts";
import { type SecretUse, writeLastUses } from "./last-use.ts";
import { measureQueueLoad, type QueueLoad } from "./queue-load.ts";
import { queueName, replayJobName } from "./queue-name.ts";
import { createRedisClock } from "./redis-clock.ts";
import { findDurabilityProblems, findWholeFile, readRedisFacts } from "./redis-durability.ts";
import { findSequenceProblems } from "./sequence.ts";

export interface Producer {
  /**
   * Puts the event on Redis' disk (with `appendfsync always`) and returns its sequence number.
   *
   * @throws EnqueueError after at most {@link enqueueDeadlineMs}, or as soon as this process gets to it when it was
   * frozen. The event may have been queued before that: only the answer is missing. It is not queued after that.
   */
  enqueue(event: AcceptedEvent): Promise<number>;
  /**
   * Puts an event back that was given up: the data as it came out of the queue then, so its id and its sequence stay.
   * Nothing happens while the event is in the queue.
   *
   * @throws EnqueueError as above
   */
  requeue(eventId: string, data: unknown): Promise<void>;
  /**
   * What keeps Redis from being reached or from holding events safely, as sentences for an operator. Empty: all is well.
   * Never throws, and answers within {@link enqueueDeadlineMs}.
   */
  findProblems(): Promise<string[]>;
  /**
   * Another number with each connection. What was found out over one need not be true of the Redis that the next one
   * leads to.
   */
  connectionNumber(): number;
  /** Calls back whenever a connection has come about, and has its number. */
  onConnected(listener: () => void): void;
  /** @throws when Redis does not answer within {@link enqueueDeadlineMs} */
  measureLoad(): Promise<QueueLoad>;
  /** @throws as above */
  writeLastUses(uses: SecretUse[]): Promise<void>;
  close(): Promise<void>;
}

/** The event could not be queued, or Redis did not say so in time. The message holds nothing of the event. */
export class EnqueueError extends Error {
  override name = "EnqueueError";
}

/** A partner hears of our outage within 2 s; this leaves room for the answer itself. */
export const enqueueDeadlineMs = 1_500;

/** A Redis that vanished without closing the connection is given up after this long without a byte. */
const socketTimeoutMs = 5_000;
const longestReconnectDelayMs = 500;
/**
 * One call is with Redis, and one waits at its socket. More would not be answered sooner, but be smaller, and each
 * costs Redis a write to its disk. While Redis stands still, events go on to its socket: it may be back in time.
 */
const addsUnderWay = { maxCalls: 2, patienceMs: 100 };

/**
 * The connection fails fast: with BullMQ's and ioredis' defaults an add waits without limit while Redis is down. Each
 * wait has a deadline of ours instead of ioredis' commandTimeout, which sets a timer for each command of a batch. Both
 * skip options are needed, since a queue built while Redis is down would otherwise never work again.
 *
 * @param onError told of each connection error; ioredis reconnects by itself
 * @param onTimeLost told with each answer how far this process's clock has fallen behind Redis' since the one before:
 *   by some milliseconds, unless this machine was suspended or Redis' clock was set
 */
export function createProducer(options: {
  redisUrl: string;
  prefix: string;
  onError: (error: Error) => void;
  onTimeLost?: (lostMs: number) => void;
}): Producer {
  const redis = new Redis(options.redisUrl, {
    connectionName: "booking-events-ingest",
    enableOfflineQueue: false,
    connectTimeout: enqueueDeadlineMs,
    socketTimeout: socketTimeoutMs,
    maxRetriesPerRequest: 1,
    retryStrategy: (attempt) => Math.min(attempt * 50, longestReconnectDelayMs),
  });
  redis.on("error", options.onError);
  let connectionNumber = 0;
  /** The Redis process whose append-only file was seen to be whole. */
  let wholeFileOf: string | undefined;
  redis.on("ready", () => {
    connectionNumber += 1;
  });
  const queue = new Queue(queueName, {
    connection: redis,
    prefix: options.prefix,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  queue.on("error", options.onError);
  const clock = createRedisClock(redis, options.onTimeLost);
  const addEvents = createEventAdder(redis, options.prefix, clock);
  // Under load, most of what an add costs Redis, and us, is the way there and back, and the write to disk.
  const addTogether = gatherPerTurn(
    (events: Parameters<typeof addEvents>[0], oldestAtMs) => {
      // Their senders are told then that it failed, and may send newer events. These must not come after those. It
      // counts from when the oldest came: this process may have been frozen since, and its sender have given it up.
      const deadlineMs = oldestAtMs + enqueueDeadlineMs;
      return settle(addEvents(events, deadlineMs), Math.max(0, Math.ceil(deadlineMs - performance.now())));
    },
    { underWay: addsUnderWay },
  );

  async function settle<Result>(work: Promise<Result>, limitMs = enqueueDeadlineMs): Promise<Result> {
    try {
      return await settleWithin(limitMs, work);
    } catch (error) {
      throw new EnqueueError("The event could not be queued, or Redis did not confirm it in time.", { cause: error });
    }
  }

  return {
    // At once, so that while Redis works nothing of the event has to live but its text.
    enqueue: (event) => addTogether(serializeEvent(event)),
    async requeue(eventId, data) {
      await settle(queue.add(replayJobName, data, { ...jobOptions, jobId: eventId }));
    },
    async findProblems() {
      try {
        const looks = Promise.all([readRedisFacts(redis), findSequenceProblems(redis, options.prefix, clock)]);
        const [facts, sequenceProblems] = await settleWithin(enqueueDeadlineMs, looks);
        const problems = findDurabilityProblems(facts, wholeFileOf);
        wholeFileOf = findWholeFile(facts, wholeFileOf);
        return [...problems, ...sequenceProblems];
      } catch {
        return ["Redis does not answer. Check that it runs and that REDIS_URL is right."];
      }
    },
    connectionNumber: () => connectionNumber,
    onConnected: (listener) => void redis.on("ready", listener),
    measureLoad: () => settleWithin(enqueueDeadlineMs, measureQueueLoad(redis, queue)),
    writeLastUses: (uses) => settleWithin(enqueueDeadlineMs, writeLastUses(redis, options.prefix, uses)),
    async close() {
      await queue.close();
      redis.disconnect();
    },
  };
}

/**
 * A command that was in flight when its connection broke may never settle (ioredis issue 2193), so that each wait on
 * Redis has a limit of its own.
 */
async function settleWithin<Result>(limitMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${limitMs} ms.`)), limitMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
