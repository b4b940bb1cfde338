import type { WarningCode } from "@booking-events/bookings";
import { Counter, createTallies, Gauge, Histogram, type Registry, withDeadline } from "@booking-events/runtime";
import type { ProcessOptions } from "../deliver/process-delivery.ts";

const scrapeLimitMs = 1_000;
/** Redis is a boundary: another program may have queued events of partners that nobody knows. */
const maxPartners = 1_000;
/** Of open dead letters. */
export const maxCodes = 50;

export interface WorkerMetrics {
  count: ProcessOptions["count"];
  countFault: ProcessOptions["countFault"];
  countWarning: (code: WarningCode) => void;
  countSweepFault: () => void;
  observeBatch: (batch: { events: number; characters: number }) => void;
}

/**
 * @param options called at each scrape
 */
export function createWorkerMetrics(
  registry: Registry,
  options: {
    /** Whether the worker waits for PostgreSQL. */
    isDatabaseOut: () => boolean;
    /** Asks PostgreSQL, which may be down although no event has met that yet. */
    isDatabaseUp: () => Promise<boolean>;
    isRedisConnected: () => boolean;
    /** The number of open dead letters by code. */
    countOpenLetters: () => Promise<{ errorCode: string; count: number }[]>;
    isStuck: () => boolean;
  },
): WorkerMetrics {
  const registers = [registry];
  const processed = createTallies({
    name: "booking_events_processed_total",
    help: "Finished deliveries, by the event's kind, its outcome and its partner.",
    labelNames: ["kind", "outcome", "partner"],
    registers,
  });
  const partners = new Set<string>();
  const delays = new Histogram({
    name: "booking_events_apply_delay_seconds",
    help: "Time from when an event was queued until it was applied, with all its attempts.",
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200],
    registers,
  });
  const batchEvents = new Histogram({
    name: "booking_events_batch_events",
    help: "Events in a transaction.",
    buckets: [1, 2, 5, 10, 25, 50, 100, 200, 400, 800],
    registers,
  });
  const batchCharacters = new Histogram({
    name: "booking_events_batch_characters",
    help: "Characters of JSON in a transaction.",
    buckets: [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6],
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
    help: "0 while PostgreSQL does not answer, or takes no writes.",
    registers,
    async collect() {
      this.set(!options.isDatabaseOut() && (await options.isDatabaseUp()) ? 1 : 0);
    },
  });
  new Gauge({
    name: "booking_events_paused",
    help: "1 while the worker waits for this dependency and applies nothing: postgresql or redis.",
    labelNames: ["dependency"],
    registers,
    collect() {
      this.set({ dependency: "postgresql" }, options.isDatabaseOut() ? 1 : 0);
      this.set({ dependency: "redis" }, options.isRedisConnected() ? 0 : 1);
    },
  });
  new Gauge({
    name: "booking_events_dead_letters_open",
    help: "Open dead letters, by SQLSTATE or another code. All workers count the same letters.",
    labelNames: ["code"],
    registers,
    async collect() {
      // In an outage, the last figures stay.
      if (options.isDatabaseOut()) return;
      const letters = await withDeadline(options.countOpenLetters(), scrapeLimitMs).catch(() => undefined);
      if (letters === undefined) return;
      this.reset();
      for (const { errorCode, count } of letters) this.set({ code: errorCode }, count);
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

  function toLabel(partner: string | null): string {
    if (partner === null) return "unknown";
    if (partners.has(partner)) return partner;
    if (partners.size >= maxPartners) return "other";
    partners.add(partner);
    return partner;
  }

  return {
    count({ kind, outcome, partner, queuedAtMs }) {
      processed(kind ?? "unknown", outcome, toLabel(partner)).count += 1;
      // The clocks of two hosts may differ.
      if (queuedAtMs !== undefined) delays.observe(Math.max(0, Date.now() - queuedAtMs) / 1_000);
    },
    observeBatch({ events, characters }) {
      batchEvents.observe(events);
      batchCharacters.observe(characters);
    },
    countSweepFault: () => sweepFaults.inc(),
    countFault: (code) => faults.inc({ code }),
    countWarning: (code) => warned.inc({ code }),
  };
}
