import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Producer } from "@booking-events/queue";
import { Gauge, type Logger, type Registry, repeat } from "@booking-events/runtime";

export interface LoadShedder {
  /** True: refuse events until it is false again. */
  isOverloaded(): boolean;
  /** Why, for an operator. Empty: it is not overloaded. */
  warnings(): string[];
  stop(): void;
}

export interface LoadLimits {
  /** Events in the queue. */
  maxBacklog: number;
  /** Part of Redis' maxmemory. Redis refuses at 1, and then workers can take nothing out either. */
  memoryHighWater: number;
  /** Mean delay of this process's event loop between two looks. Partners wait that long several times over. */
  maxEventLoopDelayMs: number;
}

type Measure = keyof LoadLimits;

/** Events are accepted again when the measure is below this part of its limit, so that it does not go to and fro. */
const recoveredShare = 0.9;
/** What all ingest processes take in meanwhile must fit into Redis above the high-water mark. */
const redisIntervalMs = 100;
/** Long enough that one garbage collection does not make a mean. */
const delayIntervalMs = 500;
const delayResolutionMs = 20;
const nanosecondsPerMs = 1_000_000;

/**
 * Looks several times a second how full the queue and Redis' memory are, and how far behind this process is, so that a
 * request needs no look of its own. Resolves after the first look.
 */
export async function watchLoad(options: {
  measureLoad: Producer["measureLoad"];
  limits: LoadLimits;
  logger: Logger;
  metrics: Registry;
}): Promise<LoadShedder> {
  const { measureLoad, limits, logger } = options;
  const shedding = new Gauge({
    name: "ingest_shedding",
    help: "1 while events are refused because of this measure: maxBacklog, memoryHighWater, maxEventLoopDelayMs.",
    labelNames: ["measure"],
    registers: [options.metrics],
  });
  const stopping = new AbortController();
  const exceeded = new Map<Measure, number>();
  const delays = monitorEventLoopDelay({ resolution: delayResolutionMs });
  delays.enable();

  function judge(measure: Measure, value: number): void {
    const limit = limits[measure];
    const wasExceeded = exceeded.has(measure);
    const isExceeded = value > limit * (wasExceeded ? recoveredShare : 1);
    if (isExceeded) exceeded.set(measure, value);
    else exceeded.delete(measure);
    shedding.set({ measure }, isExceeded ? 1 : 0);
    if (isExceeded === wasExceeded) return;
    if (isExceeded) logger.warn({ measure, value, limit }, "overloaded: events are refused");
    else logger.info({ measure, value, limit }, "no longer overloaded by this measure");
  }

  function lookAtDelay(): void {
    // A histogram without a sample has a mean of NaN.
    const delayMs = delays.mean / nanosecondsPerMs - delayResolutionMs;
    delays.reset();
    judge("maxEventLoopDelayMs", Number.isNaN(delayMs) ? 0 : delayMs);
  }

  async function lookAtRedis(): Promise<void> {
    try {
      const { backlog, memoryShare } = await measureLoad();
      judge("maxBacklog", backlog);
      judge("memoryHighWater", memoryShare);
    } catch {
      // Redis is out, which refuses events by itself; the last verdict stands until it is back.
    }
  }

  lookAtDelay();
  await lookAtRedis();
  void repeat(lookAtDelay, delayIntervalMs, stopping.signal);
  void repeat(lookAtRedis, redisIntervalMs, stopping.signal);
  return {
    isOverloaded: () => exceeded.size > 0,
    warnings: () => [...exceeded].map(([measure, value]) => describe(measure, value, limits[measure])),
    stop() {
      stopping.abort();
      delays.disable();
    },
  };
}

/** True from the first refusal to the last one, also when the value has come down to between the two bounds. */
function describe(measure: Measure, value: number, limit: number): string {
  const recoversAt = limit * recoveredShare;
  switch (measure) {
    case "maxBacklog":
      return `Events are refused until at most ${Math.floor(recoversAt)} wait in the queue: ${value} do now, and MAX_BACKLOG is ${limit}. Add workers, or see what holds them up.`;
    case "memoryHighWater":
      return `Events are refused until Redis uses at most ${toPercent(recoversAt)} of its maxmemory: it uses ${toPercent(value)} now, and REDIS_MEMORY_HIGH_WATER is ${toPercent(limit)}. Let the workers drain it, or raise maxmemory.`;
    case "maxEventLoopDelayMs":
      return `Events are refused until this process is behind by at most ${recoversAt} ms: it is by ${Math.round(value)} ms now, and the limit is ${limit} ms. Add ingest processes.`;
  }
}

function toPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
