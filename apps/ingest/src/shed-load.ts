import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import type { Producer } from "@booking-events/queue";
import { Gauge, type Logger, type Registry } from "@booking-events/service";

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
const lookIntervalMs = 500;
const delayResolutionMs = 20;
const nanosecondsPerMs = 1_000_000;

/**
 * Looks twice a second how full the queue, Redis' memory and this process are, so that a request needs no look of its
 * own. Resolves after the first look.
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

  async function look(): Promise<void> {
    // A histogram without a sample has a mean of NaN.
    const delayMs = delays.mean / nanosecondsPerMs - delayResolutionMs;
    delays.reset();
    judge("maxEventLoopDelayMs", Number.isNaN(delayMs) ? 0 : delayMs);
    try {
      const { backlog, memoryShare } = await measureLoad();
      judge("maxBacklog", backlog);
      judge("memoryHighWater", memoryShare);
    } catch {
      // Redis is out, which refuses events by itself; the last verdict stands until it is back.
    }
  }

  async function keepLooking(): Promise<void> {
    while (!stopping.signal.aborted) {
      await wait(lookIntervalMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (!stopping.signal.aborted) await look();
    }
  }

  await look();
  void keepLooking();
  return {
    isOverloaded: () => exceeded.size > 0,
    warnings: () => [...exceeded].map(([measure, value]) => describe(measure, value, limits[measure])),
    stop() {
      stopping.abort();
      delays.disable();
    },
  };
}

function describe(measure: Measure, value: number, limit: number): string {
  switch (measure) {
    case "maxBacklog":
      return `Events are refused: ${value} wait in the queue, more than MAX_BACKLOG (${limit}). Add workers, or see what holds them up.`;
    case "memoryHighWater":
      return `Events are refused: Redis has used ${toPercent(value)} of its maxmemory, more than REDIS_MEMORY_HIGH_WATER (${toPercent(limit)}). Let the workers drain it, or raise maxmemory.`;
    case "maxEventLoopDelayMs":
      return `Events are refused: this process is behind by ${Math.round(value)} ms, more than ${limit} ms. Add ingest processes.`;
  }
}

function toPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
