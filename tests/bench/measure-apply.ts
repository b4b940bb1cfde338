import { setTimeout as sleep } from "node:timers/promises";
import { queueName } from "@booking-events/queue";
import type { EventEnvelope } from "@booking-events/schema";
import { cpuTimeUs } from "./cpu-time.ts";
import type { BenchDatabase } from "./data-services.ts";
import { fillQueue } from "./fill-queue.ts";
import { countInstructions } from "./instructions.ts";
import { defaultConcurrency, newQueuePrefix, startWorker } from "./process-under-test.ts";
import type { Bench, Measurement } from "./scenario.ts";

/** Frequent enough for a measurement of a second, and rare enough to cost Redis nothing. */
const pollMs = 20;
/** Of the events: what V8 needs to compile the code that is used most. */
const warmUpShare = 1 / 3;

/**
 * Queues the events and measures one worker that applies them. Its start and warm-up don't count.
 *
 * @param program what Node is given to run the worker
 */
export async function measureApply(
  bench: Bench,
  program: readonly string[],
  options: { database: BenchDatabase; events: readonly EventEnvelope[]; concurrency?: number | undefined },
): Promise<Measurement> {
  const { services, signal } = bench;
  const { database, events, concurrency = defaultConcurrency } = options;
  const queuePrefix = newQueuePrefix();
  await fillQueue(services.redisUrl, queuePrefix, events);
  const worker = await startWorker(bench, program, {
    queuePrefix,
    databaseUrl: database.url,
    // A worker takes this many events at once. Of a small queue it would take all, and leave none to measure.
    concurrency: Math.min(concurrency, Math.ceil(events.length / 10)),
  });
  const untilLeft = async (most: number) => {
    for (;;) {
      signal.throwIfAborted();
      const left = await countLeft(bench, queuePrefix);
      const cpuUs = [worker.cpuUs(), cpuTimeUs(services.redisPid), cpuTimeUs(services.postgresPid)];
      if (left <= most) return { left, atMs: performance.now(), cpuUs };
      await sleep(pollMs);
    }
  };
  try {
    await untilLeft(events.length * (1 - warmUpShare));
    const endCount = await countInstructions([[worker.pid], [services.redisPid], [services.postgresPid]]);
    const start = await untilLeft(events.length);
    const end = await untilLeft(0);
    const instructions = await endCount();
    const measured = start.left - end.left;
    const [cpuUs = Number.NaN, redisCpuUs = Number.NaN, postgresCpuUs = Number.NaN] = end.cpuUs.map(
      (time = Number.NaN, index) => (time - (start.cpuUs[index] ?? Number.NaN)) / measured,
    );
    const [kInstructions, redisKInstructions, postgresKInstructions] = instructions.map(
      (count) => count / 1_000 / measured,
    ) as [number, number, number];
    const eventsPerSecond = (measured * 1_000) / (end.atMs - start.atMs);
    return {
      eventsPerSecond,
      cpuUs,
      redisCpuUs,
      postgresCpuUs,
      kInstructions,
      redisKInstructions,
      postgresKInstructions,
    };
  } finally {
    await worker.stop();
    await services.emptyRedis();
  }
}

/** Events in the queue, in whatever state. */
export async function countLeft({ services: { redis } }: Bench, queuePrefix: string): Promise<number> {
  const key = (name: string) => `${queuePrefix}:${queueName}:${name}`;
  const counts = await Promise.all([redis.llen(key("wait")), redis.llen(key("active")), redis.zcard(key("delayed"))]);
  return counts.reduce((sum, count) => sum + count, 0);
}
