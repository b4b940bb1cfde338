import type { Redis } from "ioredis";
import { defineScript, runScript } from "../redis/run-script.ts";

/**
 * The numbers of shards to which events were sent, beside shard 0. While the number is changed, senders with the old and
 * the new number run at the same time, and afterwards events may still wait in shards that nobody uses any more. Workers
 * and operators' commands learn from this which shards there are. It has at most one entry for each power of two.
 */
export const shardCountIntervalMs = 5_000;
/** A number is no longer in use if nobody has recorded it for this time. Several records may fail. */
const inUseMs = 60_000;

/**
 * KEYS: a sorted set of the numbers, by the second of Redis' clock in which each was last recorded.
 * ARGV: the number.
 */
const recordScript = defineScript(`
redis.call('ZADD', KEYS[1], redis.call('TIME')[1], ARGV[1])
`);

/**
 * KEYS: as above.
 * ARGV: the number, for how many seconds a record is valid.
 * Returns 1 if the number is no longer recorded.
 */
const forgetScript = defineScript(`
local recordedAt = redis.call('ZSCORE', KEYS[1], ARGV[1])
if recordedAt and redis.call('TIME')[1] - recordedAt <= tonumber(ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
`);

export async function recordShardCount(redis: Redis, prefix: string, shardCount: number): Promise<void> {
  // Without a record there is one shard.
  if (shardCount > 1) await runScript(redis, recordScript, [toKey(prefix)], [shardCount]);
}

/** Returns the recorded numbers, whether they are still in use or not. */
export async function readShardCounts(redis: Redis, prefix: string): Promise<number[]> {
  return (await redis.zrange(toKey(prefix), "0", "-1")).map(Number);
}

/**
 * Removes a number that nobody uses any more. Call this when the shards that only this number has are empty.
 *
 * @returns whether it is removed
 */
export async function forgetShardCount(
  redis: Redis,
  prefix: string,
  shardCount: number,
  unusedForMs = inUseMs,
): Promise<boolean> {
  return (await runScript<number>(redis, forgetScript, [toKey(prefix)], [shardCount, unusedForMs / 1_000])) === 1;
}

function toKey(prefix: string): string {
  return `${prefix}:shard-counts`;
}
