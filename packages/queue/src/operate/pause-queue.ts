import { Queue } from "bullmq";
import { queueName } from "../events/queue-name.ts";
import { isQueuePaused } from "../look/is-queue-paused.ts";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";

/**
 * Tells all workers to take no more events, or to take them again. Events are still added while the queue is paused,
 * and workers finish those that they hold. Redis keeps the state until it is changed again.
 *
 * @returns whether the state was another one before
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function setQueuePaused(options: QueueLocation & { isPaused: boolean }): Promise<boolean> {
  const { prefix, isPaused } = options;
  return withConnection(options, async (redis) => {
    const wasPaused = await isQueuePaused(redis, prefix);
    const queue = new Queue(queueName, {
      connection: redis,
      prefix,
      skipWaitingForReady: true,
      skipVersionCheck: true,
      skipMetasUpdate: true,
    });
    // The rejection says the same.
    queue.on("error", () => {});
    // Again even if nothing changes: an earlier call may have been cut off.
    await (isPaused ? queue.pause() : queue.resume());
    return wasPaused !== isPaused;
  });
}
