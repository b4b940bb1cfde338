import type { Redis } from "ioredis";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/**
 * Also removes the oldest ids if their jobs do not exist any more, because somebody has deleted them. Otherwise the queue
 * would seem to have an event that nobody applies.
 *
 * KEYS: the queue's retrying, the job.
 * ARGV: the prefix of job keys, the job's id.
 */
const noteRetryScript = defineScript(`
local retrying, job = unpack(KEYS)
for _, id in ipairs(redis.call('ZRANGE', retrying, 0, 9)) do
  if redis.call('EXISTS', ARGV[1] .. id) == 0 then redis.call('ZREM', retrying, id) end
end
local queuedAt = redis.call('HMGET', job, 'timestamp')[1]
-- First a write that needs no memory: see fetch-events.ts.
redis.call('ZREM', retrying, ARGV[2])
if queuedAt and string.match(queuedAt, '^%d+$') then redis.call('ZADD', retrying, queuedAt, ARGV[2]) end
`);

/**
 * Returns a function that notes that an event is delivered again later. A note stays until the event leaves the queue, so
 * the oldest of them tells how long events have not been applied.
 */
export function createRetryNoter(redis: Redis, prefix: string): (jobId: string) => Promise<void> {
  const queueKey = queueKeys(prefix);
  return (jobId) => runScript(redis, noteRetryScript, [retryingName, jobId].map(queueKey), [queueKey(""), jobId]);
}
