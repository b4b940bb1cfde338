import type { WarningCode } from "@booking-events/bookings";
import type { Registry } from "@booking-events/runtime";
import { Counter, Gauge } from "prom-client";
import type { ProcessOptions } from "../deliver/process-delivery.ts";

export interface WorkerMetrics {
  count: ProcessOptions["count"];
  countFault: ProcessOptions["countFault"];
  countWarning: (code: WarningCode) => void;
  countSweepFault: () => void;
  /** Returns how many events have been finished or failed an attempt since the start. It shows that work goes on. */
  countFinished: () => number;
}

/**
 * @param options called at each scrape
 */
export function createWorkerMetrics(
  registry: Registry,
  options: {
    isDatabaseOut: () => boolean;
    isStuck: () => boolean;
    isPaused: () => boolean;
  },
): WorkerMetrics {
  const registers = [registry];
  let finished = 0;
  const processed = new Counter({
    name: "booking_events_processed_total",
    help: "Finished deliveries, by the event's kind and its outcome.",
    labelNames: ["kind", "outcome"],
    registers,
  });
  const faults = new Counter({
    name: "booking_events_attempts_failed_total",
    help: "Failed attempts to apply an event, by SQLSTATE or by the name of the error.",
    labelNames: ["code"],
    registers,
  });
  const warned = new Counter({
    name: "booking_events_warnings_total",
    help: "Warnings recorded with events, by code: likely mistakes of senders that lose no data.",
    labelNames: ["code"],
    registers,
  });
  const sweepFaults = new Counter({
    name: "booking_events_sweep_failures_total",
    help: "Events given up by the queue that could not be handled, and failed searches for such events.",
    registers,
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
    help: "1 while events wait and none is finished, although PostgreSQL is available.",
    registers,
    collect() {
      this.set(options.isStuck() ? 1 : 0);
    },
  });
  new Gauge({
    name: "booking_events_queue_paused",
    help: "1 while an operator has paused the queue, so that no worker takes events.",
    registers,
    collect() {
      this.set(options.isPaused() ? 1 : 0);
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
