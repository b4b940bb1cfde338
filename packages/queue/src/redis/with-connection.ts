import { type RedisAddress, type RedisServers, withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { connectToRedis, connectToServer, type QueueLocation } from "./connect-to-redis.ts";
import { readRefusal } from "./read-refusal.ts";

const timeoutMs = 2_000;
const options = {
  connectionName: "booking-events-ops",
  lazyConnect: true,
  connectTimeout: timeoutMs,
  commandTimeout: timeoutMs,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

/**
 * Runs work on a connection of its own, which fails instead of waiting for Redis.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export function withConnection<Result>(
  location: QueueLocation,
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  return runConnected(connectToRedis(location, options), work);
}

/** Does the same with the server at this address, such as a replica. */
export function withServer<Result>(
  redisServers: RedisServers,
  address: RedisAddress,
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  return runConnected(connectToServer(redisServers, address, options), work);
}

async function runConnected<Result>(redis: Redis, work: (redis: Redis) => Promise<Result>): Promise<Result> {
  // The rejection only says that the connection is closed. The listener gets the reason.
  let reason: Error | undefined;
  redis.on("error", (error) => {
    reason = error;
  });
  try {
    // ioredis limits how long the connection takes, but not how long Redis takes to say that it is ready.
    await withDeadline(redis.connect(), timeoutMs).catch(async (error: Error) => {
      throw await readRefusal(redis, reason ?? error);
    });
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
