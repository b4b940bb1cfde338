import type { Redis } from "ioredis";
import { defineScript, runScript } from "./run-script.ts";

/**
 * A sorted set of processes by the second of Redis' clock in which each last recorded itself. Entries that are too old
 * belong to processes that have ended, or come from a clock that was set forward. Entries in the future come from a clock
 * that was set back. A living process is soon back in the set. Removing comes first, because Redis refuses the first write
 * of a script that may need memory when it has reached maxmemory, but not later ones.
 *
 * KEYS: the set.
 * ARGV: the process, for how many seconds a record is valid.
 * Returns how many processes are in the set.
 */
const recordAliveScript = defineScript(`
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + 1, '+inf')
redis.call('ZADD', KEYS[1], now, ARGV[1])
return redis.call('ZCARD', KEYS[1])
`);

/**
 * Records that a process is alive.
 *
 * @param set its key
 * @returns how many processes have recorded themselves in the last `validS` seconds
 */
export function recordAlive(redis: Redis, set: string, member: string, validS: number): Promise<number> {
  return runScript<number>(redis, recordAliveScript, [set], [member, validS]);
}
