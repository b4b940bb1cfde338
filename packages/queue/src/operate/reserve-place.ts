import { sequenceKey } from "../events/sequence.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { forEachShard, type ShardedQueue, valuesOf } from "../shards/for-each-shard.ts";

/**
 * KEYS: the last sequence number.
 * ARGV: the smallest number that may be returned, whether to reserve it (1).
 * Returns a number that is larger than those of all events that were added.
 */
const reserveScript = defineScript(`
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
local place = math.max(time[1] * 1000000 + time[2], last + 1, tonumber(ARGV[1]))
if ARGV[2] == '1' then redis.call('SET', KEYS[1], string.format('%.0f', place)) end
return string.format('%.0f', place)
`);

/**
 * Reserves a place in the order of receipt, in all shards: after each event that was added before this began, and before
 * each that is added after this has ended.
 *
 * @param isReserved false: only says which place it would be
 * @throws what ioredis throws when a Redis does not answer within 2 s
 */
export async function reservePlace(queue: ShardedQueue, isReserved: boolean): Promise<number> {
  const reserve = async (atLeast: number) =>
    valuesOf(
      await forEachShard(queue, (location) =>
        withConnection(location, (redis) =>
          runScript<string>(redis, reserveScript, [sequenceKey(location.prefix)], [atLeast, isReserved ? 1 : 0]),
        ),
      ),
    ).map(Number);
  const place = Math.max(...(await reserve(0)));
  // The clocks of the shards differ. Those that are behind must give later events a later place, too.
  if (isReserved) await reserve(place);
  return place;
}
