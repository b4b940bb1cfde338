import type { RedisServers } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { describeRedisFault } from "./describe-redis-fault.ts";
import { readRefusal } from "./read-refusal.ts";

/**
 * Remembers why a connection broke until it is ready again.
 *
 * @returns a function that describes the outage in sentences for an operator
 */
export function watchOutage(redis: Redis, servers: RedisServers): () => string {
  let reason: Error = new Error("Connection is closed.");
  redis.on("error", (error) => {
    reason = error;
    void readRefusal(redis, error).then((refusal) => {
      if (reason === error) reason = refusal;
    });
  });
  redis.on("ready", () => {
    reason = new Error("Connection is closed.");
  });
  return () => {
    const { what, advice } = describeRedisFault(reason, servers) ?? {
      what: "does not answer",
      advice: "Look into its log.",
    };
    return `Redis ${what}. ${advice}`.trimEnd();
  };
}
