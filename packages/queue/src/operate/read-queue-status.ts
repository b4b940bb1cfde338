import { setTimeout as sleep } from "node:timers/promises";
import type { ServerTime } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { mergeStates, type QueueState, readShardState, type ShardState } from "../look/queue-state.ts";
import { parseWorker, type WorkerIdentity } from "../look/worker-registry.ts";
import { type LastUses, readLastUses } from "../partners/last-use.ts";
import { countIngests } from "../partners/token-buckets.ts";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { findDurabilityProblems, parseInfo, type RedisFacts, readRedisFacts } from "../redis/durability.ts";
import { withConnection } from "../redis/with-connection.ts";
import { forEachShard, type ShardedQueue, valuesOf } from "../shards/for-each-shard.ts";
import { namingShards } from "../shards/shards.ts";
import { readQueueRecord } from "./change-queue.ts";

export interface QueueStatus {
  /** Of the Redis whose memory is the fullest, if the shards are on several. */
  redis: RedisSettings;
  /** Why Redis cannot store events safely, in sentences for an operator. */
  problems: string[];
  isPaused: boolean;
  counts: Pick<QueueState, "waiting" | "held" | "delayed">;
  /** When the oldest event in the queue was queued, whatever its state is; null: there is none. */
  oldestQueuedAt: Date | null;
  /**
   * How long it takes until no event waits, at the pace of the last second. Infinity: no fewer events wait than a
   * second before. Null: it was not measured.
   */
  drainMs: number | null;
  workers: WorkerIdentity[];
  /** What the Redis of each shard says about the time. */
  times: ServerTime[];
  /** The database that the queue feeds. Null: none yet, or unknown, because the Redis of shard 0 does not answer. */
  database: string | null;
  /** The shards of which no worker takes events. */
  unservedShards: number[];
  shardCount: number;
  /** Null: unknown, because the Redis that knows it does not answer. */
  ingestCount: number | null;
  /** Null: unknown, as above. */
  lastUses: LastUses | null;
}

interface RedisSettings {
  version: string;
  isAppendOnly: boolean;
  /** Null: Redis does not permit to read it. */
  appendFsync: string | null;
  evictionPolicy: string;
  usedBytes: number;
  /** 0: no limit. */
  maxBytes: number;
}

interface Confirmation {
  /** How many replicas must have an event before it counts as queued. Default: 0. */
  replicasToConfirm?: number;
}

/** A shorter time would say little about a queue that is worked off in batches. */
const paceIntervalMs = 1_000;

/**
 * Reads what an operator must know of Redis and the queue. The cost does not depend on the length of the queue.
 *
 * @param options.measuresPace how fast events are taken, which takes a second if any wait
 * @throws what ioredis throws when no shard's Redis answers within 2 s
 */
export async function readQueueStatus(
  queue: ShardedQueue & Confirmation,
  { measuresPace = true }: { measuresPace?: boolean } = {},
): Promise<QueueStatus> {
  const [results, record, ingestCount, lastUses] = await Promise.all([
    forEachShard(queue, (location) => readShard(location, measuresPace)),
    readQueueRecord(queue).catch(() => null),
    countIngests(queue).catch(() => null),
    readLastUses(queue).catch(() => null),
  ]);
  const answers = results.flatMap((result) => ("value" in result ? [{ ...result.value, shard: result.shard }] : []));
  if (answers.length === 0) valuesOf(results);
  const { waiting, held, delayed, givenUp, oldestAgeMs, isPaused } = mergeStates(
    answers.map(({ after }) => after),
    answers.length === results.length,
  );
  return {
    redis: answers.map(({ redis }) => redis).reduce((one, other) => (shareOf(other) > shareOf(one) ? other : one)),
    problems: describeProblems(results),
    isPaused,
    counts: { waiting, held, delayed },
    oldestQueuedAt: waiting + held + delayed + givenUp === 0 ? null : new Date(Date.now() - oldestAgeMs),
    drainMs: measuresPace ? measurePace(answers) : null,
    workers: [...new Set(answers.flatMap(({ after }) => after.workers))].map(parseWorker),
    times: answers.map(({ after: { clockAheadMs, newestEventMs } }) => ({ clockAheadMs, newestEventMs })),
    unservedShards: answers.flatMap(({ shard, after }) => (after.workers.length === 0 ? [shard] : [])),
    database: record?.database ?? null,
    shardCount: results.length,
    ingestCount,
    lastUses,
  };
}

interface ShardReading {
  redis: RedisSettings;
  problems: string[];
  before: ShardState;
  after: ShardState;
}

async function readShard(location: QueueLocation & Confirmation, measuresPace: boolean): Promise<ShardReading> {
  const { prefix } = location;
  return withConnection(location, async (redis) => {
    const [facts, states] = await Promise.all([readRedisFacts(redis), readTwice(redis, prefix, measuresPace)]);
    return { redis: toSettings(facts), problems: findDurabilityProblems(facts, location), ...states };
  });
}

/** @returns the state of the shard a moment ago and now */
async function readTwice(
  redis: Redis,
  prefix: string,
  measuresPace: boolean,
): Promise<{ before: ShardState; after: ShardState }> {
  const before = await readShardState(redis, prefix);
  if (before.waiting === 0 || !measuresPace) return { before, after: before };
  await sleep(paceIntervalMs);
  return { before, after: await readShardState(redis, prefix) };
}

function describeProblems(results: Awaited<ReturnType<typeof forEachShard<ShardReading>>>): string[] {
  return namingShards(
    results.map((result) => [
      result.shard,
      "value" in result ? result.value.problems : ["Redis does not answer. Check that it runs."],
    ]),
  );
}

function toSettings({ info, config }: RedisFacts): RedisSettings {
  const facts = parseInfo(info);
  return {
    version: facts.get("redis_version") ?? "?",
    isAppendOnly: facts.get("aof_enabled") === "1",
    appendFsync: config?.get("appendfsync") ?? null,
    evictionPolicy: facts.get("maxmemory_policy") ?? "?",
    usedBytes: Number(facts.get("used_memory") ?? 0),
    maxBytes: Number(facts.get("maxmemory") ?? 0),
  };
}

function shareOf({ usedBytes, maxBytes }: RedisSettings): number {
  return maxBytes === 0 ? 0 : usedBytes / maxBytes;
}

/** @returns how long it takes until no event waits. The queue is empty when its slowest shard is */
function measurePace(shards: ShardReading[]): number {
  const times = shards.map(({ before, after }) => {
    if (before.waiting === 0) return 0;
    const fewer = before.waiting - after.waiting;
    return fewer <= 0 ? Number.POSITIVE_INFINITY : (after.waiting / fewer) * paceIntervalMs;
  });
  return Math.max(...times);
}
