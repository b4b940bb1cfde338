import type { Redis } from "ioredis";
import { toMemoryShare } from "./queue-load.ts";
import { queueName } from "./queue-name.ts";
import { findDurabilityProblems } from "./redis-durability.ts";
import { defineScript, runScript } from "./run-script.ts";
import { heartbeatValidMs, workersKey } from "./worker-registry.ts";

/** What the whole queue looks like. It is the same for every process that reads it. */
export interface QueueState {
  /** Events that wait for a worker. */
  waiting: number;
  /** Events that wait for their next attempt. */
  delayed: number;
  /** Events that workers hold. */
  held: number;
  /** Events that the queue has given up, until a worker tries each alone. */
  givenUp: number;
  /** How long ago the oldest event that waits or is held was queued; 0 if there is none. In milliseconds. */
  oldestAgeMs: number;
  /** How many events workers have finished since Redis has counted them. */
  finished: number;
  /** Used memory as a share of `maxmemory`; 0 if Redis has no limit. */
  memoryShare: number;
  /** Whether Redis keeps what it confirms, as far as `INFO` shows. Only ingest may read the settings of fsync. */
  isDurable: boolean;
  /** Whether an operator has paused the queue. */
  isPaused: boolean;
  /** Workers that take events. */
  workers: number;
}

/** The key of the number of finished events. */
export function finishedKey(prefix: string): string {
  return `${prefix}:${queueName}:finished`;
}

/**
 * KEYS: the queue's wait, prioritized, active, delayed, failed and meta, the number of finished events, the workers.
 * ARGV: the prefix of job keys, for how many seconds a worker's record is valid.
 *
 * The event that has waited longest is the last of its list, so its age takes two commands however many wait. Another
 * program may have put anything in the place of a job, or its time.
 */
const readScript = defineScript(`
local wait, prioritized, active, delayed, failed, meta, finished, workers = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = now
for _, list in ipairs({ wait, active }) do
  local id = redis.call('LINDEX', list, -1)
  local fields = id and redis.pcall('HMGET', ARGV[1] .. id, 'timestamp') or {}
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
  redis.call('ZCOUNT', workers, time[1] - tonumber(ARGV[2]), '+inf'),
}
`);

/** @throws what ioredis throws when Redis does not answer */
export async function readQueueState(redis: Redis, prefix: string): Promise<QueueState> {
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = [
    ...["wait", "prioritized", "active", "delayed", "failed", "meta"].map(queueKey),
    finishedKey(prefix),
    workersKey(prefix),
  ];
  const [numbers, info] = await Promise.all([
    runScript<number[]>(redis, readScript, keys, [queueKey(""), heartbeatValidMs / 1_000]),
    redis.info(),
  ]);
  const [waiting = 0, delayed = 0, held = 0, givenUp = 0, oldestAgeMs = 0, finished = 0, paused = 0, workers = 0] =
    numbers;
  return {
    ...{ waiting, delayed, held, givenUp, oldestAgeMs, finished, workers },
    memoryShare: toMemoryShare(info),
    isDurable: findDurabilityProblems({ info, config: null }).length === 0,
    isPaused: paused === 1,
  };
}
