import type { Redis } from "ioredis";
import { queueName } from "../events/queue-name.ts";

const ofOneSide = [":events:events", ":events:id", ":events:meta", ":events:finished"];

/**
 * Returns everything in the queue except BullMQ's event stream, its length, a counter of ids that we do not use, and our
 * count of finished events.
 */
export async function dumpQueue(redis: Redis, prefix: string): Promise<Record<string, unknown>> {
  const names = (await redis.keys(`${prefix}:${queueName}:*`)).map((key) => key.slice(prefix.length)).sort();
  const dumped = names.filter((name) => !ofOneSide.includes(name));
  return Object.fromEntries(
    await Promise.all(dumped.map(async (name) => [name, await dump(redis, `${prefix}${name}`)])),
  );
}

/** Times differ between two runs, so only their number of digits is kept. */
async function dump(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case "hash": {
      const { opts, timestamp, processedOn, ...fields } = await redis.hgetall(key);
      return {
        ...fields,
        ...(opts !== undefined && { opts: JSON.parse(opts), timestamp: timestamp?.length }),
        ...(processedOn !== undefined && { processedOn: processedOn.length }),
      };
    }
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return (await redis.smembers(key)).sort();
    case "string":
      return { value: await redis.get(key), expires: (await redis.pttl(key)) > 0 };
    default:
      return (await redis.zrange(key, "0", "-1", "WITHSCORES")).map((text) =>
        /^\d{11,}$/.test(text) ? text.length : text,
      );
  }
}
