import { setTimeout as sleep } from "node:timers/promises";
import { queueName } from "@booking-events/queue";
import { type Contestant, startContestant } from "./contestant.ts";
import { cpuTimeUs } from "./cpu-time.ts";
import type { BenchDatabase } from "./data-services.ts";
import type { Bench, Measurement } from "./scenario.ts";

/** What the worker's own default is. */
export const ourConcurrency = "3000";
/** Often enough for a measurement of a second, and seldom enough to cost Redis nothing. */
const lookIntervalMs = 20;
/** Of the events, while V8 still compiles what is used most. */
const warmUpShare = 1 / 3;

export interface ApplyOptions {
  program: readonly string[];
  concurrency: string;
  /** Default: 1. */
  processes?: number;
  /** Of a queue that holds the events. */
  queuePrefix: string;
  database: BenchDatabase;
  /** How many of them are to be applied; the first third warms the processes up. */
  count: number;
  environment?: Record<string, string>;
}

/** Events applied from a full queue. What the processes need to start and to warm up is no part of it. */
export async function measureApply(bench: Bench, options: ApplyOptions): Promise<Measurement> {
  const { program, concurrency, processes = 1, queuePrefix, database, count, environment } = options;
  const { services, signal } = bench;
  const leftAtFirst = await countLeft(bench, queuePrefix);
  // Of a small queue, all would be taken at once, and none be left to measure.
  const heldAtOnce = Math.min(Number(concurrency), Math.ceil(count / 10));
  const contestants = await Promise.all(
    Array.from({ length: processes }, () =>
      startContestant(bench, program, {
        ...{ REDIS_URL: services.redisUrl, DATABASE_URL: database.url, QUEUE_PREFIX: queuePrefix },
        ...{ CONCURRENCY: String(heldAtOnce), LOG_LEVEL: "warn", ...environment },
      }),
    ),
  );
  try {
    const untilLeftIs = async (isIt: (left: number) => boolean) => {
      for (;;) {
        signal.throwIfAborted();
        const left = await countLeft(bench, queuePrefix);
        if (isIt(left)) return { left, atMs: performance.now(), cpu: readCpu(bench, contestants) };
        await sleep(lookIntervalMs);
      }
    };
    const start = await untilLeftIs((left) => left < leftAtFirst - count * warmUpShare);
    const end = await untilLeftIs((left) => left <= leftAtFirst - count);
    const applied = start.left - end.left;
    const perEvent = (of: keyof CpuReading) => {
      const [from, to] = [start.cpu[of], end.cpu[of]];
      return from === undefined || to === undefined ? undefined : (to - from) / applied;
    };
    return {
      eventsPerSecond: (applied * 1_000) / (end.atMs - start.atMs),
      ...{ cpuUs: perEvent("cpuUs"), redisCpuUs: perEvent("redisCpuUs"), postgresCpuUs: perEvent("postgresCpuUs") },
    };
  } finally {
    await Promise.all(contestants.map((contestant) => contestant.stop()));
  }
}

/** Events in the queue in whatever state. */
export async function countLeft({ services: { redis } }: Bench, queuePrefix: string): Promise<number> {
  const key = (name: string) => `${queuePrefix}:${queueName}:${name}`;
  const counts = await Promise.all([redis.llen(key("wait")), redis.llen(key("active")), redis.zcard(key("delayed"))]);
  return counts.reduce((sum, count) => sum + count, 0);
}

type CpuReading = Record<"cpuUs" | "redisCpuUs" | "postgresCpuUs", number | undefined>;

function readCpu({ services }: Bench, contestants: Contestant[]): CpuReading {
  const times = contestants.map((contestant) => contestant.cpuUs());
  return {
    cpuUs: times.includes(undefined) ? undefined : times.reduce<number>((sum, time) => sum + (time ?? 0), 0),
    redisCpuUs: cpuTimeUs(services.redisPid),
    postgresCpuUs: cpuTimeUs(services.postgresPid),
  };
}
