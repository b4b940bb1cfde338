import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { parseInfo } from "../redis/durability.ts";

export interface QueueLoad {
  /** Events that wait for a worker or for their next attempt. */
  backlog: number;
  /** Used memory as a share of `maxmemory`; 0 if Redis has no limit. */
  memoryShare: number;
}

export async function measureQueueLoad(redis: Redis, prefix: string): Promise<QueueLoad> {
  const queueKey = queueKeys(prefix);
  const [waiting, prioritized, delayed, info] = await Promise.all([
    redis.llen(queueKey("wait")),
    redis.zcard(queueKey("prioritized")),
    redis.zcard(queueKey("delayed")),
    redis.info("memory"),
  ]);
  return { backlog: waiting + prioritized + delayed, memoryShare: toMemoryShare(info) };
}

/** @param info the reply of INFO */
export function toMemoryShare(info: string): number {
  const facts = parseInfo(info);
  const maximum = Number(facts.get("maxmemory") ?? 0);
  return maximum === 0 ? 0 : Number(facts.get("used_memory") ?? 0) / maximum;
}
