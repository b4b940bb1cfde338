import type { Redis } from "ioredis";
import { lists } from "../events/lists.ts";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { forEachShard, type ShardedQueue, valuesOf } from "../shards/for-each-shard.ts";
import { type QueuedEvent, readQueuedEvents } from "./read-queued-events.ts";

/**
 * Finds an event that is in the queue, by its id. An id does not tell its shard, so all of them are asked.
 *
 * @param eventId a UUID in lower case
 * @throws what ioredis throws when the Redis of a shard does not answer within 2 s
 */
export async function findQueuedEvent(queue: ShardedQueue, eventId: string): Promise<QueuedEvent | undefined> {
  const results = await forEachShard(queue, (location) =>
    withConnection(location, (redis) => findInShard(redis, location.prefix, eventId)),
  );
  return valuesOf(results).find((event) => event !== undefined);
}

/**
 * Returns in which list an event is, and its score there. Waiting events are in a list without an index, so what is in no
 * other waits.
 *
 * KEYS: the queue's active, delayed, failed and prioritized; the job.
 * ARGV: the job's id.
 */
const placeScript = defineScript(`
local active, delayed, failed, prioritized, job = unpack(KEYS)
if redis.call('EXISTS', job) == 0 then return {} end
for name, key in pairs({ delayed = delayed, failed = failed, prioritized = prioritized }) do
  local score = redis.call('ZSCORE', key, ARGV[1])
  if score then return { name, score } end
end
return { redis.call('LPOS', active, ARGV[1]) and 'active' or 'wait', '0' }
`);

async function findInShard(redis: Redis, prefix: string, id: string): Promise<QueuedEvent | undefined> {
  const keys = ["active", "delayed", "failed", "prioritized", id].map(queueKeys(prefix));
  const [name, score = "0"] = await runScript<string[]>(redis, placeScript, keys, [id]);
  const list = lists.find((candidate) => candidate.name === name);
  if (list === undefined) return undefined;
  const [event] = await readQueuedEvents(redis, prefix, list, [{ id, score }]);
  return event;
}
