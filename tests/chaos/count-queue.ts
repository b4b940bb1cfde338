import { queueName } from "@booking-events/queue";
import { Queue } from "bullmq";
import { Redis } from "ioredis";

export interface QueueCounter {
  /** Events in the queue, whatever keeps them there; null: Redis does not answer. */
  count(): Promise<QueueCounts | null>;
  close(): Promise<void>;
}

/** By BullMQ's names of states. */
export type QueueCounts = Record<(typeof states)[number], number>;

const states = ["waiting", "active", "delayed", "prioritized", "waiting-children", "failed"] as const;
const commandTimeoutMs = 2_000;

export function createQueueCounter(redisUrl: string, prefix: string): QueueCounter {
  const redis = new Redis(redisUrl, {
    commandTimeout: commandTimeoutMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    retryStrategy: () => 200,
  });
  redis.on("error", () => {});
  const queue = new Queue(queueName, {
    connection: redis,
    prefix,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  queue.on("error", () => {});
  return {
    async count() {
      try {
        return (await queue.getJobCounts(...states)) as QueueCounts;
      } catch {
        return null;
      }
    },
    async close() {
      await queue.close();
      redis.disconnect();
    },
  };
}

export function sumCounts(counts: QueueCounts): number {
  return states.reduce((sum, state) => sum + counts[state], 0);
}
