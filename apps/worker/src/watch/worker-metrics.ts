import type { Outcome, WarningCode } from "@booking-events/bookings";
import { Counter, createTallies, Gauge, Histogram, type Registry, withDeadline } from "@booking-events/runtime";
import type { FeedReader } from "@booking-events/store";

const scrapeLimitMs = 1_000;
/** Redis is a boundary: another program may have queued events of partners that nobody knows. */
const maxPartners = 1_000;
/** Of open dead letters. */
export const maxCodes = 50;
/** Those that are furthest behind. Whoever may follow the feed chooses a name. */
export const maxFeedReaders = 1_000;

export interface ProcessedDelivery {
  /** Null if the event can't be read. */
  kind: string | null;
  partner: string | null;
  outcome: Outcome | "dead" | "attempt-failed" | "later-version";
  /** It is of a test partner. Default: it is not. */
  isTest?: boolean | undefined;
  /** When ingest queued the event, if it has been applied; in epoch milliseconds. */
  queuedAtMs?: number;
}

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

export function createWorkerMetrics(registry: Registry) {
  const { processed, processedTests, delays, batchEvents, batchCharacters, faults, warnings, sweepFaults } =
    defineMetrics([registry]);
  const partners = new Set<string>();
  let appliedAtMs = 0;
  new Gauge({
    name: "booking_events_applied_timestamp_seconds",
    help: "When this worker last applied an event. 0 before the first.",
    registers: [registry],
    collect() {
      this.set(appliedAtMs / 1_000);
    },
  });

  function toLabel(partner: string | null): string {
    if (partner === null) return "unknown";
    if (partners.size >= maxPartners && !partners.has(partner)) return "other";
    partners.add(partner);
    return partner;
  }

  return {
    countProcessed({ kind, outcome, partner, isTest = false, queuedAtMs }: ProcessedDelivery): void {
      if (isTest) processedTests.inc({ outcome });
      else processed(kind ?? "unknown", outcome, toLabel(partner)).count += 1;
      // The clocks of two hosts may differ.
      if (queuedAtMs === undefined) return;
      appliedAtMs = Date.now();
      if (isTest) return;
      delays.observe(Math.max(0, appliedAtMs - queuedAtMs) / 1_000);
    },
    observeBatch({ events, characters }: { events: number; characters: number }): void {
      batchEvents.observe(events);
      batchCharacters.observe(characters);
    },
    /** Counts a failed attempt by the code that the log has too. */
    countFault: (code: string) => faults.inc({ code }),
    countWarning: (code: WarningCode) => warnings.inc({ code }),
    countSweepFault: () => sweepFaults.inc(),
  };
}

function defineMetrics(registers: Registry[]) {
  return {
    processed: createTallies({
      name: "booking_events_processed_total",
      help: "Finished deliveries, by the event's kind, its outcome and its partner. Without those of test partners.",
      labelNames: ["kind", "outcome", "partner"],
      registers,
    }),
    processedTests: new Counter({
      name: "booking_events_test_processed_total",
      help: "Finished deliveries of test partners' events, by their outcome.",
      labelNames: ["outcome"],
      registers,
    }),
    delays: new Histogram({
      name: "booking_events_apply_delay_seconds",
      help: "Time from when an event was queued until it was applied, with all its attempts.",
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200],
      registers,
    }),
    batchEvents: new Histogram({
      name: "booking_events_batch_events",
      help: "Events in a transaction.",
      buckets: [1, 2, 5, 10, 25, 50, 100, 200, 400, 800],
      registers,
    }),
    batchCharacters: new Histogram({
      name: "booking_events_batch_characters",
      help: "Characters of JSON in a transaction.",
      buckets: [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6],
      registers,
    }),
    faults: new Counter({
      name: "booking_events_attempts_failed_total",
      help: "Failed attempts to apply an event, by SQLSTATE or by the name of the error.",
      labelNames: ["code"],
      registers,
    }),
    warnings: new Counter({
      name: "booking_events_warnings_total",
      help: "Warnings recorded with events, by code: likely mistakes of senders that lose no data.",
      labelNames: ["code"],
      registers,
    }),
    sweepFaults: new Counter({
      name: "booking_events_sweep_failures_total",
      help: "Events given up by the queue that could not be handled, and failed searches for such events.",
      registers,
    }),
  };
}

/** @param state what is asked at each scrape */
export function exportWorkerState(
  registry: Registry,
  state: {
    isDatabaseOut: () => boolean;
    isDatabaseUp: () => Promise<boolean>;
    isRedisConnected: () => boolean;
    countOpenLetters: () => Promise<{ errorCode: string; count: number }[]>;
    isStuck: () => boolean;
    listFeedReaders: () => Promise<ReaderState[]>;
  },
): void {
  const registers = [registry];
  const countOpenLetters = readInTime(state.countOpenLetters);
  new Gauge({
    name: "booking_events_database_up",
    help: "0 while PostgreSQL does not answer, or takes no writes.",
    registers,
    async collect() {
      this.set(!state.isDatabaseOut() && (await state.isDatabaseUp()) ? 1 : 0);
    },
  });
  new Gauge({
    name: "booking_events_paused",
    help: "1 while the worker waits for this dependency and applies nothing: postgresql or redis.",
    labelNames: ["dependency"],
    registers,
    collect() {
      this.set({ dependency: "postgresql" }, state.isDatabaseOut() ? 1 : 0);
      this.set({ dependency: "redis" }, state.isRedisConnected() ? 0 : 1);
    },
  });
  new Gauge({
    name: "booking_events_dead_letters_open",
    help: "Open dead letters, by SQLSTATE or another code. All workers count the same letters.",
    labelNames: ["code"],
    registers,
    async collect() {
      // In an outage, the last figures stay.
      if (state.isDatabaseOut()) return;
      const letters = await countOpenLetters();
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
      this.set(state.isStuck() ? 1 : 0);
    },
  });
  exportFeedReaders(registry, state);
}

type ReaderState = Omit<FeedReader, "owner" | "lastId" | "hasMissedChanges" | "seenAt">;

const readerFigures: { name: string; help: string; read: (reader: ReaderState) => number }[] = [
  {
    name: "booking_events_feed_reader_lag_seconds",
    help: "How long the oldest change has waited that a reader of the feed has not dealt with.",
    read: ({ lagMs }) => lagMs / 1_000,
  },
  {
    name: "booking_events_feed_reader_lag_changes",
    help: "How many changes a reader of the feed has not dealt with.",
    read: ({ lagChanges }) => lagChanges,
  },
  {
    name: "booking_events_feed_reader_parked",
    help: "How many bookings wait for another attempt to give them to a reader of the feed.",
    read: ({ parked }) => parked,
  },
  {
    name: "booking_events_feed_reader_dead_letters",
    help: "How many bookings could not be given to a reader of the feed, and are not tried any more.",
    read: ({ dead }) => dead,
  },
  {
    name: "booking_events_feed_reader_breaker_open",
    help: "1 while a reader of the feed is given one booking at a time, because several have failed in a row.",
    read: ({ breakerOpenedAt }) => (breakerOpenedAt === null ? 0 : 1),
  },
  {
    name: "booking_events_feed_reader_failing_seconds",
    help: "For how long every attempt to give a change to a reader of the feed has failed. 0: the last one has not.",
    read: ({ failingSince }) => (failingSince === null ? 0 : Math.max(0, Date.now() - failingSince.getTime()) / 1_000),
  },
  {
    name: "booking_events_feed_reader_paused",
    help: "1 while a subscription is paused.",
    read: ({ pausedAt }) => (pausedAt === null ? 0 : 1),
  },
];

function exportFeedReaders(
  registry: Registry,
  { isDatabaseOut, listFeedReaders }: { isDatabaseOut: () => boolean; listFeedReaders: () => Promise<ReaderState[]> },
): void {
  // All figures of a scrape share one answer.
  const readOnce = readInTime(listFeedReaders);
  for (const { name, help, read } of readerFigures) {
    new Gauge({
      name,
      help,
      labelNames: ["reader"],
      registers: [registry],
      async collect() {
        if (isDatabaseOut()) return;
        const readers = await readOnce();
        if (readers === undefined) return;
        this.reset();
        for (const reader of readers) this.set({ reader: reader.name }, read(reader));
      },
    });
  }
}

/**
 * Asks PostgreSQL for what a scrape shows. A question that is not answered in time still holds a connection, so it is
 * not asked again before it ends.
 *
 * @returns what returns undefined if there is no answer in time
 */
function readInTime<Result>(ask: () => Promise<Result>): () => Promise<Result | undefined> {
  let asking: Promise<Result> | undefined;
  return () => {
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return withDeadline(asking, scrapeLimitMs).catch(() => undefined);
  };
}
