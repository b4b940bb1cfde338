import type { Redis } from "ioredis";
import { queueName } from "./queue-name.ts";
import { defineScript, runScript } from "./run-script.ts";

/**
 * KEYS: the queue's active, stalled, the job and its lock. ARGV: the job's id. A job that is there by now stays.
 */
const dropGoneScript = defineScript(`
local active, stalled, job, lock = unpack(KEYS)
if redis.call('HEXISTS', job, 'name') == 1 then return 0 end
redis.call('LREM', active, 1, ARGV[1])
redis.call('SREM', stalled, ARGV[1])
return redis.call('DEL', job, lock)
`);

/**
 * Makes a function that takes an id out of the queue whose job is gone, as may be after Redis was killed, or an operator
 * deleted a key. There is nothing left to apply. Handled like a job, it would become a dead letter of nothing, maybe for
 * an event that was applied.
 */
export function createDropGone(redis: Redis, prefix: string): (jobId: string) => Promise<void> {
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  return async (jobId) => {
    const keys = [queueKey("active"), queueKey("stalled"), queueKey(jobId), queueKey(`${jobId}:lock`)];
    await runScript(redis, dropGoneScript, keys, [jobId]);
  };
}
