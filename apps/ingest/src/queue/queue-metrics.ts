import type { Producer } from "@booking-events/queue";
import { Gauge, Histogram, type Registry } from "@booking-events/runtime";
import type { ShardsWatch } from "./watch-shards.ts";

type Enqueue = Producer["enqueue"];

/** Measures how long Redis takes to store events, whether it stores them or not. */
export function measureEnqueuing(enqueue: Enqueue, metrics: Registry): Enqueue {
  const durations = new Histogram({
    name: "ingest_enqueue_duration_seconds",
    help: "Time until Redis has an event on disk, or until it is refused because Redis does not confirm that.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2],
    registers: [metrics],
  });
  return async (event) => {
    const startedAtMs = performance.now();
    try {
      return await enqueue(event);
    } finally {
      durations.observe((performance.now() - startedAtMs) / 1_000);
    }
  };
}

export function exportAvailability(queue: ShardsWatch, metrics: Registry): void {
  const registers = [metrics];
  new Gauge({
    name: "ingest_queue_available",
    help: "1 while Redis answers and keeps what it confirms. 0: events are refused, and /readyz says why.",
    registers,
    collect() {
      this.set(queue.isAvailable() ? 1 : 0);
    },
  });
  new Gauge({
    name: "ingest_shards_unavailable",
    help: "Shards of the queue whose events are refused. /readyz says which and why.",
    registers,
    collect() {
      this.set(queue.countUnavailable());
    },
  });
}
