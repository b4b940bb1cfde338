import { Gauge, type Registry, withDeadline } from "@booking-events/runtime";
import type { QueueState } from "./queue-state.ts";

/** Prometheus gives up after 10 s by default. */
const scrapeLimitMs = 1_000;
/** Long enough for the pauses between scrapes, which are often 15 or 30 s. */
const rateWindowMs = 120_000;

type Scraped = QueueState & { drainSeconds: number };

const figures: readonly { name: string; help: string; toValue: (state: Scraped) => number }[] = [
  {
    name: "booking_events_backlog_oldest_age_seconds",
    help: "Time since the oldest event in the queue was queued, whatever its state is. 0 without an event.",
    toValue: ({ oldestAgeMs }) => oldestAgeMs / 1_000,
  },
  {
    name: "booking_events_backlog_drain_seconds",
    help: "How long the waiting events take at the rate of the last two minutes. +Inf while none is finished.",
    toValue: ({ drainSeconds }) => drainSeconds,
  },
  {
    name: "booking_events_workers",
    help: "Workers that have recorded in Redis that they take events, in the last 15 seconds.",
    toValue: ({ workers }) => workers,
  },
  {
    name: "booking_events_queue_paused",
    help: "1 while an operator has paused the queue, so that no worker takes events.",
    toValue: ({ isPaused }) => (isPaused ? 1 : 0),
  },
  {
    name: "booking_events_redis_memory_ratio",
    help: "Redis' used memory as a share of maxmemory. 0 if it has no limit.",
    toValue: ({ memoryShare }) => memoryShare,
  },
  {
    name: "booking_events_redis_durable",
    help: "0 if Redis could lose what it confirms. Only ingest sees all of its settings.",
    toValue: ({ isDurable }) => (isDurable ? 1 : 0),
  },
  {
    name: "booking_events_redis_clock_ahead_seconds",
    help: "How far Redis' clock is ahead of that of this process. Of several, the one that differs the most.",
    toValue: ({ clockAheadMs }) => clockAheadMs / 1_000,
  },
];

/**
 * Exports the state of the whole queue, read once for each scrape. Ingest and workers export the same, so it is seen
 * even when there is no worker. While Redis is down, the last figures stay. They are NaN before the first.
 */
export function exportQueueMetrics(metrics: Registry, readQueueState: () => Promise<QueueState>): void {
  const registers = [metrics];
  const read = shareReading(readQueueState);
  new Gauge({
    name: "booking_events_backlog",
    help: "Events in the queue, by state: waiting, delayed until their next attempt, held by a worker, or given-up.",
    labelNames: ["state"],
    registers,
    async collect() {
      const { waiting, delayed, held, givenUp } = (await read()) ?? {};
      for (const [state, count] of Object.entries({ waiting, delayed, held, "given-up": givenUp })) {
        if (count !== undefined) this.set({ state }, count);
      }
    },
  });
  for (const { name, help, toValue } of figures) {
    const gauge = new Gauge({
      name,
      help,
      registers,
      async collect() {
        const state = await read();
        if (state !== undefined) this.set(toValue(state));
      },
    });
    gauge.set(Number.NaN);
  }
  new Gauge({
    name: "booking_events_redis_up",
    help: "1 if Redis answered this scrape, for all shards.",
    registers,
    async collect() {
      this.set((await read())?.isComplete ? 1 : 0);
    },
  });
}

/** All gauges of one scrape share a reading. @returns undefined if Redis does not answer */
function shareReading(readQueueState: () => Promise<QueueState>): () => Promise<Scraped | undefined> {
  const estimateDrain = createDrainEstimator();
  let reading: Promise<Scraped | undefined> | undefined;

  async function read(): Promise<Scraped | undefined> {
    try {
      const state = await withDeadline(readQueueState(), scrapeLimitMs);
      return { ...state, drainSeconds: estimateDrain(state, performance.now()) };
    } catch {
      return undefined;
    } finally {
      reading = undefined;
    }
  }

  return () => {
    reading ??= read();
    return reading;
  };
}

/** Returns a function that returns how many seconds the waiting events take; NaN before there is a rate. */
export function createDrainEstimator(): (state: Pick<QueueState, "waiting" | "finished">, nowMs: number) => number {
  let samples: { atMs: number; finished: number }[] = [];

  return ({ waiting, finished }, nowMs) => {
    // The count starts again after Redis has lost its data.
    samples = samples.filter((sample) => nowMs - sample.atMs <= rateWindowMs && sample.finished <= finished);
    const [first] = samples;
    samples.push({ atMs: nowMs, finished });
    if (waiting === 0) return 0;
    if (first === undefined) return Number.NaN;
    return (waiting / (finished - first.finished)) * ((nowMs - first.atMs) / 1_000);
  };
}
