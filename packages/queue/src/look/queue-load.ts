import type { Queue } from "bullmq";
import type { Redis } from "ioredis";

export interface QueueLoad {
  /** Events that wait for a worker or for their next attempt. */
  backlog: number;
  /** Used memory as a share of `maxmemory`; 0 if Redis has no limit. */
  memoryShare: number;
}

export async function measureQueueLoad(redis: Redis, queue: Queue): Promise<QueueLoad> {
  const [backlog, info] = await Promise.all([
    queue.getJobCountByTypes("waiting", "delayed", "prioritized"),
    redis.info("memory"),
  ]);
  return { backlog, memoryShare: toMemoryShare(info) };
}

/** @param info the reply of INFO */
export function toMemoryShare(info: string): number {
  const used = readNumber(info, "used_memory");
  const maximum = readNumber(info, "maxmemory");
  return maximum === 0 ? 0 : used / maximum;
}

function readNumber(info: string, field: string): number {
  return Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
}
