import type { Redis } from "ioredis";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/**
 * KEYS: the queue's active, stalled and retrying, the job and its lock.
 * ARGV: the job's id. If the job exists in the meantime, it is kept.
 */
const removeMissingJobScript = defineScript(`
local active, stalled, retrying, job, lock = unpack(KEYS)
if redis.call('HEXISTS', job, 'name') == 1 then return 0 end
redis.call('LREM', active, 1, ARGV[1])
redis.call('SREM', stalled, ARGV[1])
redis.call('ZREM', retrying, ARGV[1])
return redis.call('DEL', job, lock)
`);

/**
 * Returns a function that removes an id from the queue whose job does not exist, for example after Redis was killed or
 * an operator deleted a key. There is nothing to apply. Processing it like a job would create an empty dead letter,
 * possibly for an event that was applied.
 */
export function createMissingJobRemover(redis: Redis, prefix: string): (jobId: string) => Promise<void> {
  const queueKey = queueKeys(prefix);
  return async (jobId) => {
    const keys = ["active", "stalled", retryingName, jobId, `${jobId}:lock`].map(queueKey);
    await runScript(redis, removeMissingJobScript, keys, [jobId]);
  };
}
