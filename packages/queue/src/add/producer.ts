import { gatherPerTurn, withDeadline } from "@booking-events/runtime";
import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { jobOptions } from "../events/job-options.ts";
import { queueName, replayJobName } from "../events/queue-name.ts";
import { findSequenceProblems } from "../events/sequence.ts";
import { measureQueueLoad, type QueueLoad } from "../look/queue-load.ts";
import { readShardState, type ShardState } from "../look/queue-state.ts";
import { createRedisClock } from "../redis/clock.ts";
import { createReplicaConfirmation } from "../redis/confirm-replicas.ts";
import { connectFailingFast, leadsToUndisputedPrimary, type QueueLocation } from "../redis/connect-to-redis.ts";
import { findDurabilityProblems, findRunWithCompleteAof, readRedisFacts } from "../redis/durability.ts";
import { watchOutage } from "../redis/watch-outage.ts";
import { recordShardCount } from "../shards/shard-counts.ts";
import { type AcceptedEvent, createEventAdder, serializeEvent } from "./add-events.ts";
import { addNumberedEvents, type NumberedEvent } from "./add-numbered-events.ts";

export interface Producer {
  /**
   * Stores the event on Redis' disk (with `appendfsync always`), and on the wanted number of replicas, and returns its
   * sequence number.
   *
   * @throws EnqueueError after at most {@link enqueueDeadlineMs}, or as soon as a frozen process resumes. The event may
   *   have been queued before the deadline if only the answer is missing. It is not queued after it.
   * @param subject the event's `digestSubject`, if the caller knows it
   */
  enqueue(event: AcceptedEvent, subject?: string): Promise<number>;
  /**
   * Puts a failed event back into the queue with the same data, so its id and its sequence do not change. Does nothing
   * if the event is already in the queue.
   *
   * @throws EnqueueError as above
   */
  requeue(eventId: string, data: unknown): Promise<void>;
  /**
   * Stores events that have their sequence numbers. Does nothing with those that are already in the queue.
   *
   * @returns how many were added
   * @throws EnqueueError as above. Some of the events may have been queued, and it is safe to queue all again
   */
  enqueueNumbered(events: NumberedEvent[]): Promise<number>;
  /**
   * Finds reasons why Redis cannot be reached or cannot store events safely, as sentences for an operator. Empty if
   * there are none. Never throws, and answers within {@link enqueueDeadlineMs}.
   */
  findProblems(): Promise<string[]>;
  /**
   * A number that changes with each connection. A check of one connection may not apply to the next, which may lead to
   * another Redis.
   */
  connectionNumber(): number;
  /** Calls the listener whenever a new connection is ready and has its number. */
  onConnected(listener: () => void): void;
  /** @throws if Redis does not answer within {@link enqueueDeadlineMs} */
  measureLoad(): Promise<QueueLoad>;
  /** @throws as above */
  readState(): Promise<ShardState>;
  /**
   * Records beside this shard, which must be shard 0, that events are sent to this number of shards.
   *
   * @throws as above
   */
  recordShardCount(shardCount: number): Promise<void>;
  close(): Promise<void>;
}

/** The event could not be queued, or Redis did not confirm it in time. The message contains nothing of the event. */
export class EnqueueError extends Error {
  override name = "EnqueueError";
}

/** In an outage, partners get an answer within 2 s. This leaves time for the answer itself. */
export const enqueueDeadlineMs = 1_500;

/**
 * While Redis processes one call, another waits at its socket. More calls would not be answered sooner, but would be
 * smaller, and each costs Redis a write to disk. While Redis is frozen, events are still sent to its socket, because it
 * may resume in time.
 */
const addsUnderWay = { maxCalls: 2, maxWaitMs: 100 };

const disputed =
  "Most Sentinels do not confirm that this Redis is the primary. Check that they run, and wait for a failover to end.";

export interface ProducerOptions extends QueueLocation {
  /** How many replicas must have an event before it counts as queued. Default: 0. */
  replicasToConfirm?: number;
  /** Called for each connection error; ioredis reconnects by itself. */
  onError: (error: Error) => void;
  /**
   * Called with each answer, with the time by which this process's clock has fallen behind Redis' since the previous
   * answer. It is some milliseconds, unless this machine was suspended or Redis' clock was set.
   */
  onTimeLost?: (lostMs: number) => void;
}

export function createProducer(options: ProducerOptions): Producer {
  const { replicasToConfirm = 0 } = options;
  const redis = connectFailingFast(options, options.onError, { connectionName: "booking-events-ingest" });
  const describeOutage = watchOutage(redis, options.redisServers);
  let connectionNumber = 0;
  /** Whether the last look at all of Redis' settings found that it keeps what it confirms. */
  let isDurable = true;
  /** The id of the Redis process whose append-only file is known to be complete. */
  let runWithCompleteAof: string | undefined;
  redis.on("ready", () => {
    connectionNumber += 1;
  });
  const queue = createQueue(options, redis);
  const clock = createRedisClock(redis, options.onTimeLost);
  const addEvents = createEventAdder(redis, options.prefix, clock);
  const isUndisputed = () => leadsToUndisputedPrimary(redis, options.redisServers);
  const confirm = createReplicaConfirmation(redis, replicasToConfirm, {
    connectionNumber: () => connectionNumber,
    isUndisputed,
  });
  // Under load, most of the cost of adding an event is the round trip and the write to disk.
  const addTogether = gatherPerTurn(
    (events: Parameters<typeof addEvents>[0], oldestAtMs) => {
      // At the deadline, senders get an error and may send newer events, which must not be ordered before these. The
      // deadline counts from the oldest event's arrival, because this process may have been frozen since and the sender
      // may have given up.
      const deadlineMs = oldestAtMs + enqueueDeadlineMs;
      return settle(() => addEvents(events, deadlineMs), deadlineMs);
    },
    { underWay: addsUnderWay },
  );

  /** Resolves when Redis and its replicas have what `work` adds. */
  async function settle<Result>(
    work: () => Promise<Result>,
    deadlineMs = performance.now() + enqueueDeadlineMs,
  ): Promise<Result> {
    const msLeft = () => Math.max(0, Math.ceil(deadlineMs - performance.now()));
    const connection = connectionNumber;
    async function addAndConfirm(): Promise<Result> {
      const result = await work();
      await confirm(connection, msLeft());
      return result;
    }
    try {
      return await withDeadline(addAndConfirm(), msLeft());
    } catch (error) {
      throw new EnqueueError("The event could not be queued, or Redis did not confirm it in time.", { cause: error });
    }
  }

  return {
    // Serialized immediately, so only the event's text stays in memory while Redis works.
    enqueue: (event, subject) => addTogether(serializeEvent(event, subject)),
    async requeue(eventId, data) {
      await settle(() => queue.add(replayJobName, data, { ...jobOptions, jobId: eventId }));
    },
    enqueueNumbered: (events) => settle(() => addNumberedEvents(redis, options.prefix, events)),
    async findProblems() {
      try {
        const checks = Promise.all([
          readRedisFacts(redis),
          findSequenceProblems(redis, options.prefix, clock),
          replicasToConfirm === 0 || isUndisputed(),
        ]);
        const [facts, sequenceProblems, mayConfirm] = await withDeadline(checks, enqueueDeadlineMs);
        const problems = findDurabilityProblems(facts, { runWithCompleteAof, replicasToConfirm });
        isDurable = problems.length === 0;
        runWithCompleteAof = findRunWithCompleteAof(facts, runWithCompleteAof);
        return [...problems, ...(mayConfirm ? [] : [disputed]), ...sequenceProblems];
      } catch {
        return [describeOutage()];
      }
    },
    connectionNumber: () => connectionNumber,
    onConnected: (listener) => void redis.on("ready", listener),
    measureLoad: () => withDeadline(measureQueueLoad(redis, queue), enqueueDeadlineMs),
    async readState() {
      const state = await withDeadline(readShardState(redis, options.prefix), enqueueDeadlineMs);
      return { ...state, isDurable: state.isDurable && isDurable };
    },
    recordShardCount: (shardCount) =>
      withDeadline(recordShardCount(redis, options.prefix, shardCount), enqueueDeadlineMs),
    async close() {
      await queue.close();
      redis.disconnect();
    },
  };
}

/** Without the options that skip steps, a queue created while Redis is down would never work. */
function createQueue({ prefix, onError }: ProducerOptions, redis: Redis): Queue {
  const queue = new Queue(queueName, {
    connection: redis,
    prefix,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  return queue.on("error", onError);
}
