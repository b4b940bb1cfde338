import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { readShardCounts } from "./shard-counts.ts";
import { locateShard, shardNumbers } from "./shards.ts";

export interface ShardedQueue extends QueueLocation {
  /** At least so many shards. There may be more. */
  shardCount: number;
}

/** What work on a shard has returned or thrown. */
export type ShardResult<Value> = { shard: number } & ({ value: Value } | { error: unknown });

/** Each has a connection of its own. */
const shardsTogether = 32;

/**
 * Returns the number of shards in which events may be: the largest of the given and all recorded numbers. So a command
 * with a wrong `QUEUE_SHARDS` misses nothing.
 *
 * @throws what ioredis throws when the Redis of shard 0 does not answer within 2 s
 */
export async function findShardCount(queue: ShardedQueue): Promise<number> {
  const recorded = await withConnection(queue, (redis) => readShardCounts(redis, queue.prefix));
  return Math.max(queue.shardCount, ...recorded);
}

/** Runs work on all shards, on several at a time. If shard 0 does not answer, those of the given number count. */
export async function forEachShard<Value>(
  queue: ShardedQueue,
  work: (location: QueueLocation, shard: number) => Promise<Value>,
): Promise<ShardResult<Value>[]> {
  const waiting = shardNumbers(await findShardCount(queue).catch(() => queue.shardCount));
  const results: ShardResult<Value>[] = [];
  const workSome = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const shard = next;
      const working = work(locateShard({ ...queue }, shard), shard);
      results[shard] = await working.then((value) => ({ shard, value })).catch((error: unknown) => ({ shard, error }));
    }
  };
  await Promise.all(Array.from({ length: Math.min(shardsTogether, waiting.length) }, workSome));
  return results;
}

/** @throws the first error of a shard */
export function valuesOf<Value>(results: ShardResult<Value>[]): Value[] {
  return results.map((result) => {
    if ("error" in result) throw result.error;
    return result.value;
  });
}
