import { type Histogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Producer, QueueLoad } from "@booking-events/queue";
import { Gauge, type Logger, type Registry, repeat } from "@booking-events/runtime";

export interface LoadLimits {
  /** Events in the queue. */
  maxBacklog: number;
  /** As a share of Redis' maxmemory. At 1, Redis itself refuses events. */
  memoryHighWater: number;
  /** Median delay of this process's event loop between two checks. Partners wait several times as long. */
  maxEventLoopDelayMs: number;
}

type Measure = keyof LoadLimits;

/** Events are accepted again below this share of the limit, so that the state does not oscillate. */
const recoveredShare = 0.9;
/** Between two checks, the events that all ingest processes accept must fit into Redis above the high-water mark. */
const redisIntervalMs = 100;
/** Limits how old the known backlog of a shard is, if there are up to 64. */
const longestShardIntervalMs = 800;
/** Limits how many of a large number of shards are measured in each interval. */
const maxShardsPerInterval = 8;
const delayIntervalMs = 500;
const delayResolutionMs = 20;
/** With these, no single pause is the median, however long: a garbage collection, or a machine that was busy. */
const minDelaySamples = 3;
const nanosecondsPerMs = 1_000_000;

/**
 * Measures the backlog, Redis' memory and this process's delay several times a second, so requests need no checks of
 * their own. Resolves after the first check.
 *
 * @param options.measureLoads one for each shard of the queue
 */
export async function watchLoad(options: {
  measureLoads: Producer["measureLoad"][];
  limits: LoadLimits;
  logger: Logger;
  metrics: Registry;
}): Promise<LoadShedder> {
  const shedder = new LoadShedder(options);
  await measureShards(options.measureLoads, shedder);
  // Not before: nobody waits for a process that starts.
  watchDelay(shedder);
  return shedder;
}

/** Decides whether events must be refused, by what was last measured. */
export class LoadShedder {
  readonly #limits: LoadLimits;
  readonly #logger: Logger;
  readonly #shedding: Gauge;
  readonly #exceeded = new Map<Measure, number>();
  readonly #stopping = new AbortController();

  constructor({ limits, logger, metrics }: { limits: LoadLimits; logger: Logger; metrics: Registry }) {
    this.#limits = limits;
    this.#logger = logger;
    this.#shedding = new Gauge({
      name: "ingest_shedding",
      help: "1 while events are refused because of this measure: maxBacklog, memoryHighWater, maxEventLoopDelayMs.",
      labelNames: ["measure"],
      registers: [metrics],
    });
    const limit = new Gauge({
      name: "ingest_shedding_limit",
      help: "The limit of this measure: events, a share of Redis' maxmemory, milliseconds.",
      labelNames: ["measure"],
      registers: [metrics],
    });
    for (const [measure, value] of Object.entries(limits)) limit.set({ measure }, value);
    this.update("maxEventLoopDelayMs", 0);
  }

  isOverloaded(): boolean {
    return this.#exceeded.size > 0;
  }

  /** Why events are refused, for an operator. Empty if they are not. */
  warnings(): string[] {
    return Array.from(this.#exceeded, ([measure, value]) => describe(measure, value, this.#limits[measure]));
  }

  update(measure: Measure, value: number): void {
    const limit = this.#limits[measure];
    const wasExceeded = this.#exceeded.has(measure);
    const isExceeded = value > limit * (wasExceeded ? recoveredShare : 1);
    if (isExceeded) this.#exceeded.set(measure, value);
    else this.#exceeded.delete(measure);
    this.#shedding.set({ measure }, isExceeded ? 1 : 0);
    if (isExceeded === wasExceeded) return;
    if (isExceeded) this.#logger.warn({ measure, value, limit }, "overloaded: events are refused");
    else this.#logger.info({ measure, value, limit }, "no longer overloaded by this measure");
  }

  get stopped(): AbortSignal {
    return this.#stopping.signal;
  }

  stop(): void {
    this.#stopping.abort();
  }
}

/** Resolves when each shard was measured once. */
async function measureShards(measureLoads: Producer["measureLoad"][], shedder: LoadShedder): Promise<void> {
  /** The last known loads of the shards that answer. */
  const loads = new Map<number, QueueLoad>();

  async function checkShard(shard: number, measureLoad: Producer["measureLoad"]): Promise<void> {
    try {
      loads.set(shard, await measureLoad());
    } catch {
      // The events of a shard are refused anyway while its Redis is down. What it last reported must not stop the other
      // shards. If no shard answers, the last result applies until one is back.
      if (loads.size > 1) loads.delete(shard);
    }
    if (loads.size === 0) return;
    const known = [...loads.values()];
    shedder.update(
      "maxBacklog",
      known.reduce((sum, { backlog }) => sum + backlog, 0),
    );
    shedder.update("memoryHighWater", Math.max(...known.map(({ memoryShare }) => memoryShare)));
  }

  await Promise.all(measureLoads.map((measureLoad, shard) => checkShard(shard, measureLoad)));
  const intervalMs = intervalOfEachShard(measureLoads.length);
  // Each by itself, so that a shard that does not answer delays no other.
  for (const [shard, measureLoad] of measureLoads.entries())
    void repeat(() => checkShard(shard, measureLoad), intervalMs, shedder.stopped);
}

function watchDelay(shedder: LoadShedder): void {
  const delays = monitorEventLoopDelay({ resolution: delayResolutionMs });
  delays.enable();
  shedder.stopped.addEventListener("abort", () => delays.disable());
  void repeat(
    () => {
      const delayMs = medianDelayMs(delays);
      if (delayMs === undefined) return;
      delays.reset();
      shedder.update("maxEventLoopDelayMs", delayMs);
    },
    delayIntervalMs,
    shedder.stopped,
  );
}

/** @returns undefined if there are too few samples to tell one long pause from a process that cannot keep up */
export function medianDelayMs(delays: Pick<Histogram, "count" | "percentile">): number | undefined {
  if (delays.count < minDelaySamples) return undefined;
  return delays.percentile(50) / nanosecondsPerMs - delayResolutionMs;
}

/**
 * Each of several shards is measured less often than a single one. A Redis that has a part of the shards gets that part
 * of the events and of the measurements, so as many events arrive between two measurements as with one shard.
 */
export function intervalOfEachShard(shardCount: number): number {
  const inTurnMs = Math.min(redisIntervalMs * shardCount, longestShardIntervalMs);
  return Math.max(inTurnMs, (redisIntervalMs * shardCount) / maxShardsPerInterval);
}

/** The text is true from the first refusal to the last one, even while the value is between the two thresholds. */
function describe(measure: Measure, value: number, limit: number): string {
  const recoversAt = limit * recoveredShare;
  switch (measure) {
    case "maxBacklog":
      return (
        `Events are refused until at most ${Math.floor(recoversAt)} wait in the queue. ${value} wait now; ` +
        `MAX_BACKLOG is ${limit}. Add workers, or find out what delays them.`
      );
    case "memoryHighWater":
      return (
        `Events are refused until Redis uses at most ${toPercent(recoversAt)} of its maxmemory. It uses ` +
        `${toPercent(value)} now; REDIS_MEMORY_HIGH_WATER is ${toPercent(limit)}. Let the workers drain the ` +
        "queue, or raise maxmemory."
      );
    case "maxEventLoopDelayMs":
      return (
        `Events are refused until this process's event loop is delayed by at most ${recoversAt} ms. The delay is ` +
        `${Math.round(value)} ms now; the limit is ${limit} ms. Add ingest processes.`
      );
  }
}

function toPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
