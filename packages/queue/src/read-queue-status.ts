import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { QueueLocation } from "./connect-to-redis.ts";
import { findLastUses, type LastUses } from "./last-use.ts";
import { isQueuePaused } from "./pause-queue.ts";
import { type QueueState, readQueueState } from "./queue-state.ts";
import { findDurabilityProblems, parseInfo, type RedisFacts, readRedisFacts } from "./redis-durability.ts";
import { findSequenceProblems } from "./sequence.ts";
import { withConnection } from "./with-connection.ts";
import { findProcesses, type WorkerIdentity } from "./worker-registry.ts";

/** How many events are in the queue. */
export interface QueueCounts {
  waiting: number;
  /** By workers. */
  held: number;
  /** Until their next attempt. */
  delayed: number;
}

export interface QueueStatus {
  redis: RedisSettings;
  /** Why Redis cannot store events safely, in sentences for an operator. */
  problems: string[];
  isPaused: boolean;
  counts: QueueCounts;
  /** When the oldest event that waits or is held was queued; null: there is none. */
  oldestQueuedAt: Date | null;
  /**
   * How long it takes until no event waits, at the pace of the last second. Infinity: no fewer events wait than a
   * second before.
   */
  drainMs: number;
  workers: WorkerIdentity[];
  ingestCount: number;
  lastUses: LastUses;
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

/** A shorter time would say little about a queue that is worked off in batches. */
const paceIntervalMs = 1_000;

/**
 * Reads what an operator must know of Redis and the queue. The cost does not depend on the length of the queue.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readQueueStatus(location: QueueLocation): Promise<QueueStatus> {
  const { prefix } = location;
  return withConnection(location, async (redis) => {
    const [facts, sequenceProblems, isPaused, { state, drainMs }, processes, lastUses] = await Promise.all([
      readRedisFacts(redis),
      findSequenceProblems(redis, prefix),
      isQueuePaused(redis, prefix),
      measurePace(redis, prefix),
      findProcesses(redis, prefix),
      findLastUses(redis, prefix),
    ]);
    return {
      redis: toSettings(facts),
      problems: [...findDurabilityProblems(facts), ...sequenceProblems],
      ...{ isPaused, counts: toCounts(state), oldestQueuedAt: toOldest(state), drainMs, ...processes, lastUses },
    };
  });
}

function toCounts({ waiting, held, delayed }: QueueState): QueueCounts {
  return { waiting, held, delayed };
}

function toOldest({ waiting, held, oldestAgeMs }: QueueState): Date | null {
  return waiting + held === 0 ? null : new Date(Date.now() - oldestAgeMs);
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

/** The queue now, and how long it takes until no event waits. */
async function measurePace(redis: Redis, prefix: string): Promise<{ state: QueueState; drainMs: number }> {
  const before = await readQueueState(redis, prefix);
  if (before.waiting === 0) return { state: before, drainMs: 0 };
  const startedAtMs = performance.now();
  await sleep(paceIntervalMs);
  const state = await readQueueState(redis, prefix);
  const fewer = before.waiting - state.waiting;
  const elapsedMs = performance.now() - startedAtMs;
  return { state, drainMs: fewer <= 0 ? Number.POSITIVE_INFINITY : (state.waiting / fewer) * elapsedMs };
}
