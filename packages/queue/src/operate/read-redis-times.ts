import type { ServerTime } from "@booking-events/runtime";
import { readShardState } from "../look/queue-state.ts";
import { withConnection } from "../redis/with-connection.ts";
import { forEachShard, type ShardedQueue, valuesOf } from "../shards/for-each-shard.ts";

/**
 * Asks the Redis of each shard what time it is, and when it took its newest event.
 *
 * @throws what ioredis throws when one does not answer within 2 s
 */
export async function readRedisTimes(queue: ShardedQueue): Promise<ServerTime[]> {
  return valuesOf(
    await forEachShard(queue, (location) =>
      withConnection(location, (redis) => readShardState(redis, location.prefix)),
    ),
  );
}
