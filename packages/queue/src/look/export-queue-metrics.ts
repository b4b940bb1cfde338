import { Gauge, type Registry, withDeadline } from "@booking-events/runtime";
import type { QueueState } from "./queue-state.ts";

/** Prometheus gives up after 10 s by default. */
const scrapeLimitMs = 1_000;
/** Long enough for the pauses between scrapes, which are often 15 or 30 s. */
const rateWindowMs = 120_000;

/**
 * Exports the state of the whole queue, read once for each scrape. Ingest and workers export the same, so it is seen
 * even when there is no worker. While Redis is down, the last figures stay. They are NaN before the first.
 */
export function exportQueueMetrics(metrics: Registry, readQueueState: () => Promise<QueueState>): void {
  const registers = [metrics];
  const estimateDrain = createDrainEstimator();
  /** All gauges of one scrape share it. */
  let reading: Promise<QueueState | undefined> | undefined;

  function read(): Promise<QueueState | undefined> {
    reading ??= withDeadline(readQueueState(), scrapeLimitMs)
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  }

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
  function exportNumber(metric: { name: string; help: string }, toValue: (state: QueueState) => number): void {
    new Gauge({
      ...metric,
      registers,
      async collect() {
        const state = await read();
        if (state !== undefined) this.set(toValue(state));
      },
    }).set(Number.NaN);
  }

  exportNumber(
    {
      name: "booking_events_backlog_oldest_age_seconds",
      help: "Time since the oldest event that waits or is held was queued. 0 without such an event.",
    },
    ({ oldestAgeMs }) => oldestAgeMs / 1_000,
  );
  exportNumber(
    {
      name: "booking_events_backlog_drain_seconds",
      help: "How long the waiting events take at the rate of the last two minutes. +Inf while none is finished.",
    },
    (state) => estimateDrain(state, performance.now()),
  );
  exportNumber(
    {
      name: "booking_events_workers",
      help: "Workers that have recorded in Redis that they take events, in the last 15 seconds.",
    },
    ({ workers }) => workers,
  );
  exportNumber(
    {
      name: "booking_events_queue_paused",
      help: "1 while an operator has paused the queue, so that no worker takes events.",
    },
    ({ isPaused }) => (isPaused ? 1 : 0),
  );
  exportNumber(
    {
      name: "booking_events_redis_memory_ratio",
      help: "Redis' used memory as a share of maxmemory. 0 if it has no limit.",
    },
    ({ memoryShare }) => memoryShare,
  );
  exportNumber(
    {
      name: "booking_events_redis_durable",
      help: "0 if Redis could lose what it confirms. Only ingest sees all of its settings.",
    },
    ({ isDurable }) => (isDurable ? 1 : 0),
  );
  new Gauge({
    name: "booking_events_redis_up",
    help: "1 if Redis answered this scrape, for all shards.",
    registers,
    async collect() {
      this.set((await read())?.isComplete ? 1 : 0);
    },
  });
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
