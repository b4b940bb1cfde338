import { withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { sequenceKey } from "../events/sequence.ts";
import { findDurabilityProblems } from "../redis/durability.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { toMemoryShare } from "./queue-load.ts";
import { heartbeatValidMs, workersKey } from "./worker-registry.ts";

/** What a shard of the queue looks like. It is the same for every process that reads it. */
export interface ShardState {
  /** Events that wait for a worker. */
  waiting: number;
  /** Events that wait for their next attempt. */
  delayed: number;
  /** Events that workers hold. */
  held: number;
  /** Events that the queue has given up, until a worker tries each alone. */
  givenUp: number;
  /** How long ago the oldest event in the queue was queued, whatever its state is; 0 if there is none. In milliseconds. */
  oldestAgeMs: number;
  /** How many events workers have finished since Redis has counted them. */
  finished: number;
  /** Used memory as a share of `maxmemory`; 0 if Redis has no limit. */
  memoryShare: number;
  /** Whether Redis keeps what it confirms, as far as `INFO` shows. Only ingest may read the settings of fsync. */
  isDurable: boolean;
  isPaused: boolean;
  /** Workers that take events of the shard. A worker is the same text in each of its shards. */
  workers: string[];
  /** How far Redis' clock is ahead of this host's. It is wrong by at most half of the time the answer took. */
  clockAheadMs: number;
  /** When the newest event was received, by Redis' clock, in milliseconds since 1970; null: it knows none. */
  newestEventMs: number | null;
}

/** What all shards of the queue look like together. */
export interface QueueState extends Omit<ShardState, "workers" | "newestEventMs"> {
  workers: number;
  /** False if some shards did not answer. The last known state of each of them is included. */
  isComplete: boolean;
}

export function finishedKey(prefix: string): string {
  return queueKeys(prefix)("finished");
}

/**
 * KEYS: the queue's wait, prioritized, active, delayed, failed, meta and retrying, the number of finished events, the
 * workers, the last sequence number.
 * ARGV: the prefix of job keys, for how many seconds a worker's record is valid.
 *
 * A worker's record in the future is of a clock that was set back, and the worker may be gone.
 *
 * The oldest event is found by a few commands however many there are. Of those that have never failed, the one that has
 * waited longest is the last of its list; one that another worker gave back is the first of the active ones. Delayed events
 * are ordered by their next attempt, so the set of those that are retried has the oldest. It may also have ids whose jobs
 * somebody has deleted. Another program may have put anything in the place of a job, or its time.
 */
const readScript = defineScript(`
local wait, prioritized, active, delayed, failed, meta, retrying, finished, workers, sequence = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = now
local candidates = redis.call('ZRANGE', retrying, 0, 9)
candidates[#candidates + 1] = redis.call('ZRANGE', failed, 0, 0)[1]
for _, place in ipairs({ { wait, -1 }, { active, -1 }, { active, 0 } }) do
  candidates[#candidates + 1] = redis.call('LINDEX', place[1], place[2]) or nil
end
for _, id in ipairs(candidates) do
  local fields = redis.pcall('HMGET', ARGV[1] .. id, 'timestamp')
  local queuedAt = tonumber(fields[1] or nil)
  if queuedAt and queuedAt < oldest then oldest = queuedAt end
end
return {
  redis.call('LLEN', wait) + redis.call('ZCARD', prioritized),
  redis.call('ZCARD', delayed),
  redis.call('LLEN', active),
  redis.call('ZCARD', failed),
  now - oldest,
  tonumber(redis.call('GET', finished) or 0),
  redis.call('HMGET', meta, 'paused')[1] and 1 or 0,
  now,
  math.floor(tonumber(redis.call('GET', sequence) or 0) / 1000),
  redis.call('ZRANGE', workers, time[1] - tonumber(ARGV[2]), time[1] + 1, 'BYSCORE'),
}
`);

export async function readShardState(redis: Redis, prefix: string): Promise<ShardState> {
  const queueKey = queueKeys(prefix);
  const keys = [
    ...["wait", "prioritized", "active", "delayed", "failed", "meta", retryingName].map(queueKey),
    finishedKey(prefix),
    workersKey(prefix),
    sequenceKey(prefix),
  ];
  const startedAtMs = performance.now();
  const [answer, info] = await Promise.all([
    runScript<[...number[], string[]]>(redis, readScript, keys, [queueKey(""), heartbeatValidMs / 1_000]),
    redis.info(),
  ]);
  const askedAtMs = Date.now() - (performance.now() - startedAtMs) / 2;
  const workers = answer.at(-1) as string[];
  const [waiting = 0, delayed = 0, held = 0, givenUp = 0, oldestAgeMs = 0, finished = 0, paused = 0] =
    answer as number[];
  const [clockMs = Number.NaN, newestEventMs = 0] = answer.slice(7) as number[];
  return {
    waiting,
    delayed,
    held,
    givenUp,
    oldestAgeMs,
    finished,
    workers,
    memoryShare: toMemoryShare(info),
    isDurable: findDurabilityProblems({ info, config: null }).length === 0,
    isPaused: paused === 1,
    clockAheadMs: clockMs - askedAtMs,
    newestEventMs: newestEventMs === 0 ? null : newestEventMs,
  };
}

/** Leaves time for the answer to a scrape. A shard whose Redis is frozen must not delay what is known of the others. */
const shardDeadlineMs = 800;

/**
 * Returns a function that reads the state of all shards. It throws if no shard answers.
 *
 * @param readers returns a function for each shard that is served at the moment
 */
export function createStateReader(
  readers: () => Iterable<readonly [shard: number, read: () => Promise<ShardState>]>,
): () => Promise<QueueState> {
  let known = new Map<number, ShardState>();

  return async () => {
    const reading = [...readers()].map(async ([shard, read]): Promise<[number, ShardState]> => {
      return [shard, await withDeadline(read(), shardDeadlineMs)];
    });
    const results = await Promise.allSettled(reading);
    const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    if (answers.length === 0) throw new Error("No shard of the queue answers.");
    const served = new Set(Array.from(readers(), ([shard]) => shard));
    known = new Map([...known, ...answers].filter(([shard]) => served.has(shard)));
    return mergeStates([...known.values()], answers.length === results.length);
  };
}

export function mergeStates(states: ShardState[], isComplete: boolean): QueueState {
  const sum = (toNumber: (state: ShardState) => number) => states.reduce((total, state) => total + toNumber(state), 0);
  return {
    waiting: sum(({ waiting }) => waiting),
    delayed: sum(({ delayed }) => delayed),
    held: sum(({ held }) => held),
    givenUp: sum(({ givenUp }) => givenUp),
    finished: sum(({ finished }) => finished),
    oldestAgeMs: Math.max(...states.map(({ oldestAgeMs }) => oldestAgeMs)),
    memoryShare: Math.max(...states.map(({ memoryShare }) => memoryShare)),
    isDurable: states.every(({ isDurable }) => isDurable),
    isPaused: states.some(({ isPaused }) => isPaused),
    workers: new Set(states.flatMap(({ workers }) => workers)).size,
    clockAheadMs: states
      .map(({ clockAheadMs }) => clockAheadMs)
      .reduce((one, other) => (Math.abs(other) > Math.abs(one) ? other : one)),
    isComplete,
  };
}
