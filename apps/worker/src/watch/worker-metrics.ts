import type { WarningCode } from "@booking-events/bookings";
import { type Registry, withDeadline } from "@booking-events/runtime";
import { Counter, Gauge } from "prom-client";
import type { ProcessOptions } from "../deliver/process-delivery.ts";

/** What the worker counts, apart from the process's own figures. */
export interface WorkerMetrics {
  count: ProcessOptions["count"];
  countFault: ProcessOptions["countFault"];
  countWarning: (code: WarningCode) => void;
  countSweepFault: () => void;
  /** How many events have come to their end, or failed an attempt, since the start: what shows that work goes on. */
  countFinished: () => number;
}

/**
 * @param options.countBacklog asked at each scrape
 * @param options.isDatabaseOut, options.isStuck asked at each scrape
 */
export function createWorkerMetrics(
  registry: Registry,
  options: {
    countBacklog: () => Promise<{ waiting: number; delayed: number }>;
    isDatabaseOut: () => boolean;
    isStuck: () => boolean;
  },
): WorkerMetrics {
  const registers = [registry];
  let finished = 0;
  const processed = new Counter({
    name: "booking_events_processed_total",
    help: "Deliveries that came to an end, by the event's kind and its outcome.",
    labelNames: ["kind", "outcome"],
    registers,
  });
  const faults = new Counter({
    name: "booking_events_attempts_failed_total",
    help: "Attempts to apply an event that failed, by SQLSTATE, or by the name of the error.",
    labelNames: ["code"],
    registers,
  });
  const warned = new Counter({
    name: "booking_events_warnings_total",
    help: "Warnings recorded with events, by code: mistakes of senders that cost no data.",
    labelNames: ["code"],
    registers,
  });
  const sweepFaults = new Counter({
    name: "booking_events_sweep_failures_total",
    help: "Events that the queue had given up and that could not be dealt with, and searches for such that failed.",
    registers,
  });
  new Gauge({
    name: "booking_events_backlog",
    help: "Events in the queue that no worker handles now; delayed ones wait for their next attempt.",
    labelNames: ["state"],
    registers,
    async collect() {
      // Redis may be down: then the last figures stand, rather than that the scrape fails.
      const backlog = await withDeadline(options.countBacklog(), scrapeLimitMs).catch(() => undefined);
      if (backlog === undefined) return;
      this.set({ state: "waiting" }, backlog.waiting);
      this.set({ state: "delayed" }, backlog.delayed);
    },
  });
  new Gauge({
    name: "booking_events_database_up",
    help: "0 while the worker waits for PostgreSQL.",
    registers,
    collect() {
      this.set(options.isDatabaseOut() ? 0 : 1);
    },
  });
  new Gauge({
    name: "booking_events_worker_stuck",
    help: "1 while events wait and none comes to an end, though PostgreSQL is there.",
    registers,
    collect() {
      this.set(options.isStuck() ? 1 : 0);
    },
  });
  return {
    count(what) {
      finished += 1;
      processed.inc(what);
    },
    countSweepFault: () => sweepFaults.inc(),
    countFault: (code) => faults.inc({ code }),
    countWarning: (code) => warned.inc({ code }),
    countFinished: () => finished,
  };
}

const scrapeLimitMs = 1_000;
