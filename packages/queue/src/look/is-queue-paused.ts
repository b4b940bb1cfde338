import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";

/** Whether an operator has paused the queue. One cheap command: every worker asks each shard each second. */
export async function isQueuePaused(redis: Redis, prefix: string): Promise<boolean> {
  // The field that BullMQ's scripts read.
  const [paused] = await redis.hmget(queueKeys(prefix)("meta"), "paused");
  return paused !== null && paused !== undefined;
}
