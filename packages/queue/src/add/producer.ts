import { gatherPerTurn, type ServerClock, withDeadline } from "@booking-events/runtime";
import { measureQueueLoad, type QueueLoad } from "../look/queue-load.ts";
import { readShardState, type ShardState } from "../look/queue-state.ts";
import { createRedisClock } from "../redis/clock.ts";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { watchOutage } from "../redis/watch-outage.ts";
import { recordShardCount } from "../shards/shard-counts.ts";
import { type AcceptedEvent, createEventAdder, serializeEvent } from "./add-events.ts";
import { addNumberedEvents, addReplay, type NumberedEvent, type Replay } from "./add-numbered-events.ts";
import { ConfirmedWrites, enqueueDeadlineMs } from "./confirmed-writes.ts";
import { SafetyCheck } from "./safety-check.ts";

export interface Producer {
  /**
   * Stores the event on Redis' disk (with `appendfsync always`), and on the wanted number of replicas.
   *
   * @returns its sequence number; if ioredis has sent the command twice, maybe another one than the event has
   * @throws EnqueueError after at most {@link enqueueDeadlineMs}, unless this process was frozen. The event may have been
   *   queued before the deadline if only the answer is missing. It is not queued after it.
   * @param subject the event's `digestSubject`, if the caller knows it
   */
  enqueue(event: AcceptedEvent, subject?: string): Promise<number>;
  /**
   * Puts a failed event back into the queue with the same data, so its id and its sequence do not change. Does nothing
   * if the event is already in the queue.
   *
   * @throws EnqueueError as above
   */
  requeue(replay: Replay): Promise<void>;
  /**
   * Stores events that have their sequence numbers. Does nothing with those that are already in the queue.
   *
   * @returns how many were added
   * @throws EnqueueError as above. Some of the events may have been queued, and it is safe to queue all again. If its
   *   cause is SequenceInFuture, events to come would be ordered before them, and none was queued
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
  /** Returns Redis' clock, which each search for problems reads; undefined: it was never read. */
  redisClock(): ServerClock | undefined;
  /** @throws if Redis does not answer within {@link enqueueDeadlineMs} */
  measureLoad(): Promise<QueueLoad>;
  readState(): Promise<ShardState>;
  /** Records beside this shard, which must be shard 0, that events are sent to this number of shards. */
  recordShardCount(shardCount: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * While Redis processes one call, another waits at its socket. More calls would not be answered sooner, but would be
 * smaller, and each costs Redis a write to disk. While Redis is frozen, events are still sent to its socket, because it
 * may resume in time.
 */
const addsUnderWay = { maxCalls: 2, maxWaitMs: 100 };

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
  const { redisServers, prefix, replicasToConfirm = 0, onError, onTimeLost } = options;
  const redis = connectFailingFast(options, onError, { connectionName: "booking-events-ingest" });
  const clock = createRedisClock(redis, onTimeLost);
  const writes = new ConfirmedWrites(redis, redisServers, replicasToConfirm);
  const describeOutage = watchOutage(redis, redisServers);
  const check = new SafetyCheck({ redis, prefix, replicasToConfirm, clock, writes, describeOutage });
  const addEvents = createEventAdder(redis, prefix, clock);
  // Under load, most of the cost of adding an event is the round trip and the write to disk.
  const addTogether = gatherPerTurn(
    (events: Parameters<typeof addEvents>[0], oldestAtMs) => {
      // At the deadline, senders get an error and may send newer events, which must not be ordered before these. The
      // deadline counts from the oldest event's arrival, because this process may have been frozen since and the sender
      // may have given up.
      const deadlineMs = oldestAtMs + enqueueDeadlineMs;
      return writes.run(() => addEvents(events, deadlineMs), deadlineMs);
    },
    { underWay: addsUnderWay },
  );

  return {
    // Serialized immediately, so only the event's text stays in memory while Redis works.
    enqueue: (event, subject) => addTogether(serializeEvent(event, subject)),
    requeue: (replay) => writes.run(() => addReplay(redis, prefix, replay)),
    enqueueNumbered: (events) => writes.run(() => addNumberedEvents(redis, prefix, events)),
    findProblems: () => check.findProblems(),
    connectionNumber: () => writes.connectionNumber,
    onConnected: (listener) => void redis.on("ready", listener),
    redisClock: () => clock.newest(),
    measureLoad: () => withDeadline(measureQueueLoad(redis, prefix), enqueueDeadlineMs),
    async readState() {
      const state = await withDeadline(readShardState(redis, prefix), enqueueDeadlineMs);
      return { ...state, isDurable: state.isDurable && check.isDurable };
    },
    recordShardCount: (shardCount) => withDeadline(recordShardCount(redis, prefix, shardCount), enqueueDeadlineMs),
    async close() {
      redis.disconnect();
    },
  };
}
