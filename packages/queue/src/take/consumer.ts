import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { EventQueue, EventWorker } from "../events/event-job.ts";
import { queueKeys, queueName } from "../events/queue-name.ts";
import { retryDelayMs } from "../events/retry-policy.ts";
import { readShardState, type ShardState } from "../look/queue-state.ts";
import { recordWorker, removeWorker, type WorkerIdentity } from "../look/worker-registry.ts";
import { connectToRedis, type QueueLocation } from "../redis/connect-to-redis.ts";
import { watchOutage } from "../redis/watch-outage.ts";
import { changeRecord, claimQueue, type QueueRecord, readRecord } from "../shards/queue-record.ts";
import { forgetShardCount, readShardCounts } from "../shards/shard-counts.ts";
import type { Delivery } from "./delivery.ts";
import { createJobHandler, type HandleJob } from "./handle-jobs.ts";
import { type HaltReason, HeldEvents, type HoldLimits } from "./held-events.ts";
import { keepLocks } from "./keep-locks.ts";
import { type Sweeping, sweepFailed } from "./sweep-failed.ts";
import { createWorkerBackend } from "./worker-backend.ts";

export interface Consumer {
  /**
   * Starts to process deliveries, or goes on with it. Waits for Redis without limit, and reconnects by itself. If another
   * database than this is recorded, the consumer halts for `database`, and waits for another call of this.
   *
   * @param database the id of the database to which the events are applied
   */
  start(database: string): void;
  /** The queue's record, or this shard's copy of it. Its methods throw if the connection is not ready. */
  record: RecordAccess;
  /** Calls the listener whenever a connection is ready. */
  onConnected(listener: () => void): void;
  isConnected(): boolean;
  /** Returns why Redis does not answer, in a sentence for an operator; null: the connection is ready. */
  connectionProblem(): string | null;
  /** Records that this worker is alive. The worker calls this every `workerHeartbeatIntervalMs`. */
  recordAlive(): Promise<void>;
  /** @throws if the connection is not ready */
  readState(): Promise<ShardState>;
  /**
   * Processes the events that BullMQ has moved to the failed set by itself. It does so when an event was active too
   * often while its worker died, or while Redis was frozen so long that the worker seemed dead. Each event stays in
   * Redis until `judge` decides what happens to it. An event that cannot be handled does not delay the others.
   *
   * @returns the number of handled events
   */
  sweepFailed(sweeping: Sweeping): Promise<number>;
  /**
   * Returns the delivery's text as the bytes in Redis. If they are not UTF-8, another program wrote them, and the text
   * has U+FFFD where they could not be decoded. Call this while the delivery is being handled or judged.
   */
  readBytes(delivery: Pick<Delivery, "jobId" | "text">): Promise<Buffer>;
  /** Changes the limits. Events that are held stay. */
  limitTo(limits: HoldLimits): void;
  /** Takes no events until it is called with false for each reason. Those that are held are finished. */
  halt(reason: HaltReason, isHalted: boolean): void;
  /** Whether no event waits, is held by any worker, or waits for its next attempt. @throws as above */
  isEmpty(): Promise<boolean>;
  /** The numbers of shards that are recorded beside this shard, which must be shard 0. @throws as above */
  readShardCounts(): Promise<number[]>;
  /** Removes such a number, if nobody uses it any more. @throws as above */
  forgetShardCount(shardCount: number): Promise<boolean>;
  /**
   * Accepts no more deliveries, and resolves when the active ones are done. There is no time limit; the caller sets
   * one.
   */
  drain(): Promise<void>;
  /** Closes the connections even if deliveries are active. */
  close(): Promise<void>;
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

export interface ConsumerOptions extends QueueLocation, HoldLimits {
  version?: string;
  /**
   * Applies one event. It returns when the event needs no further delivery, and throws to have it delivered again
   * later. The error's message must contain nothing of the event, because BullMQ stores it in Redis.
   */
  handle: (delivery: Delivery) => Promise<void>;
  /** Called for connection errors and failures inside BullMQ. */
  onError: (error: Error) => void;
  /** Called with an id in the queue that had no job and was removed. */
  onMissingJob?: (jobId: string) => void;
  recovery?: { lockDurationMs: number; stalledCheckIntervalMs: number };
}

export function createConsumer(options: ConsumerOptions): Consumer {
  const { redisServers, prefix, recovery = defaultRecovery, onError, onMissingJob = () => {} } = options;
  const identity: WorkerIdentity = { version: options.version ?? "?", host: hostname(), pid: process.pid };
  const redis = connect(options);
  const describeOutage = watchOutage(redis, redisServers);
  const held = new HeldEvents(options);
  /** Set while the consumer drains: resolves when all released events can go back together. */
  let allCanGoBack: Promise<unknown> | undefined;
  const untilAllCanGoBack = () => allCanGoBack;
  const handleJob = createJobHandler({ redis, prefix, held, handle: options.handle, untilAllCanGoBack });
  let database: string | undefined;
  const worker = createWorker(options, { redis, held, handleJob, database: () => database ?? "" });
  const queue = createQueue(options, redis);
  const closing = new AbortController();

  return {
    start(itsDatabase) {
      held.halt("database", false);
      if (database !== undefined) return;
      database = itsDatabase;
      worker.run().catch(onError);
      void keepLocks({ held, redis, prefix, lockDurationMs: recovery.lockDurationMs, onError, signal: closing.signal });
    },
    record: accessRecord(redis, prefix),
    onConnected: (listener) => void redis.on("ready", listener),
    isConnected: () => redis.status === "ready",
    connectionProblem: () => (redis.status === "ready" ? null : describeOutage()),
    recordAlive: () => recordWorker(redis, prefix, identity),
    readState: () => ifConnected(redis, () => readShardState(redis, prefix)),
    sweepFailed: (sweeping) => sweepFailed({ redis, prefix, queue, onMissingJob }, sweeping),
    readBytes: (delivery) => readBytes(redis, prefix, delivery),
    limitTo: (limits) => held.limitTo(limits),
    halt: (reason, isHalted) => held.halt(reason, isHalted),
    async isEmpty() {
      const state = await ifConnected(redis, () => readShardState(redis, prefix));
      return state.waiting + state.delayed + state.held + state.givenUp === 0;
    },
    readShardCounts: () => ifConnected(redis, () => readShardCounts(redis, prefix)),
    forgetShardCount: (shardCount) => ifConnected(redis, () => forgetShardCount(redis, prefix, shardCount)),
    async drain() {
      held.stop();
      // If this fails, the record expires.
      removeWorker(redis, prefix, identity).catch(() => {});
      allCanGoBack ??= Promise.race([held.whenIdle(), sleep(releaseWaitMs, undefined, { ref: false })]);
      await worker.pause();
    },
    async close() {
      held.stop();
      closing.abort();
      await worker.close(true);
      redis.disconnect();
    },
  };
}

interface RecordAccess {
  /** Costs Redis little: every worker asks each shard each second. */
  read(): Promise<QueueRecord>;
  change(change: Partial<QueueRecord>): Promise<void>;
  /** Records the database if none is, in shard 0. @returns the one that is recorded then */
  claim(database: string): Promise<string>;
}

function accessRecord(redis: Redis, prefix: string): RecordAccess {
  return {
    read: () => ifConnected(redis, () => readRecord(redis, prefix)),
    change: (change) => ifConnected(redis, () => changeRecord(redis, prefix, change)),
    claim: (database) => ifConnected(redis, () => claimQueue(redis, prefix, database)),
  };
}

/** A worker waits for Redis without limit. A commandTimeout would also end the blocking read for the next job. */
function connect(options: ConsumerOptions): Redis {
  const redis = connectToRedis(options, {
    connectionName: "booking-events-worker",
    maxRetriesPerRequest: null,
    socketTimeout: socketTimeoutMs,
    retryStrategy: (attempt) => Math.min(attempt * 100, longestReconnectDelayMs),
  });
  redis.on("error", options.onError);
  return redis;
}

/**
 * Callers ask regularly, and give up before Redis answers. In a long outage, their questions would pile up in the
 * connection until it is ready again.
 */
async function ifConnected<Answer>(redis: Redis, ask: () => Promise<Answer>): Promise<Answer> {
  if (redis.status !== "ready") throw new Error("There is no connection to Redis.");
  return ask();
}

function createWorker(
  options: ConsumerOptions,
  {
    redis,
    held,
    handleJob,
    database,
  }: { redis: Redis; held: HeldEvents; handleJob: HandleJob; database: () => string },
): EventWorker {
  const { prefix, recovery = defaultRecovery, onError, onMissingJob = () => {} } = options;
  const { lockDurationMs, stalledCheckIntervalMs } = recovery;
  const createBackend = createWorkerBackend({
    redis,
    prefix,
    lockDurationMs,
    database,
    stalledCheckIntervalMs,
    maxStalledCount,
    held,
    onMissingJob,
    begin: (json, jobId, token) => worker.begin(json, jobId, token),
  });
  const worker = new EventWorker(queueName, handleJob, {
    connection: redis,
    prefix,
    autorun: false,
    lockDuration: lockDurationMs,
    skipLockRenewal: true,
    stalledInterval: stalledCheckIntervalMs,
    maxStalledCount,
    settings: { backoffStrategy: (attemptsMade) => retryDelayMs(attemptsMade) },
    createBackend,
    onFetched: (job) => held.hold(job),
  });
  return worker.on("error", onError);
}

/** Waits for Redis like the worker; adds no events. */
function createQueue({ prefix, onError }: ConsumerOptions, redis: Redis): EventQueue {
  const queue = new EventQueue(queueName, {
    connection: redis,
    prefix,
    streams: { events: { maxLen: bullmqEventsKept } },
  });
  return queue.on("error", onError);
}

async function readBytes(redis: Redis, prefix: string, { jobId, text }: Pick<Delivery, "jobId" | "text">) {
  const mayBeDamaged = text.includes("\uFFFD");
  const job = queueKeys(prefix)(jobId);
  // The job is missing if another worker has finished it in the meantime.
  return (mayBeDamaged ? await redis.hgetBuffer(job, "data") : null) ?? Buffer.from(text);
}
