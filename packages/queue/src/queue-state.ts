import type { Redis } from "ioredis";
import { readMemoryShare } from "./queue-load.ts";
import { queueName } from "./queue-name.ts";
import { defineScript, runScript } from "./run-script.ts";

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
}

/** The key of the number of finished events. */
export function finishedKey(prefix: string): string {
  return `${prefix}:${queueName}:finished`;
}

/**
 * KEYS: the queue's wait, prioritized, active, delayed and failed, and the number of finished events.
 * ARGV: the prefix of job keys.
 *
 * The event that has waited longest is the last of its list, so its age takes two commands however many wait. Another
 * program may have put anything in the place of a job, or its time.
 */
const readScript = defineScript(`
local wait, prioritized, active, delayed, failed, finished = unpack(KEYS)
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
}
`);

/** @throws what ioredis throws when Redis does not answer */
export async function readQueueState(redis: Redis, prefix: string): Promise<QueueState> {
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = [...["wait", "prioritized", "active", "delayed", "failed"].map(queueKey), finishedKey(prefix)];
  const [numbers, memoryShare] = await Promise.all([
    runScript<number[]>(redis, readScript, keys, [queueKey("")]),
    readMemoryShare(redis),
  ]);
  const [waiting = 0, delayed = 0, held = 0, givenUp = 0, oldestAgeMs = 0, finished = 0] = numbers;
  return { waiting, delayed, held, givenUp, oldestAgeMs, finished, memoryShare };
}
