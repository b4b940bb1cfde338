import { withConnection } from "../redis/with-connection.ts";
import { forEachShard, type ShardedQueue } from "../shards/for-each-shard.ts";
import { changeRecord, type QueueRecord, readRecord } from "../shards/queue-record.ts";

/** @throws what ioredis throws when the Redis of shard 0 does not answer within 2 s */
export function readQueueRecord(queue: ShardedQueue): Promise<QueueRecord> {
  return withConnection(queue, (redis) => readRecord(redis, queue.prefix));
}

/**
 * Tells all workers to take no more events, or to take them again; or which database the queue feeds from now on. Events
 * are still added while the queue is paused, and workers finish those that they hold. Redis keeps the record until it is
 * changed again.
 *
 * If the Redis of another shard does not answer, workers bring the change there within a second of their next answer
 * from both.
 *
 * @returns the record as it was before
 * @throws what ioredis throws when the Redis of shard 0 does not answer within 2 s
 */
export async function changeQueue(queue: ShardedQueue, change: Partial<QueueRecord>): Promise<QueueRecord> {
  const before = await withConnection(queue, async (redis) => {
    const record = await readRecord(redis, queue.prefix);
    // Again even if nothing changes: an earlier call may have been cut off before it came to the other shards.
    await changeRecord(redis, queue.prefix, change);
    return record;
  });
  await forEachShard(queue, async (location, shard) => {
    if (shard > 0) await withConnection(location, (redis) => changeRecord(redis, location.prefix, change));
  });
  return before;
}
