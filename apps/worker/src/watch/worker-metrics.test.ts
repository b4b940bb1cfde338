import { createMetrics } from "@booking-events/runtime";
import { beforeEach, expect, test } from "vitest";
import { createWorkerMetrics, exportWorkerState, type WorkerMetrics } from "./worker-metrics.ts";

let registry: ReturnType<typeof createMetrics>;
let metrics: WorkerMetrics;
let letters: { errorCode: string; count: number }[];
let isDatabaseOut: boolean;
let isDatabaseUp: boolean;
let readers: Awaited<ReturnType<Parameters<typeof exportWorkerState>[1]["listFeedReaders"]>>;
let readerQueries: number;
let letterQueries: number;
/** Both queries wait for it. */
let answer: Promise<void>;

beforeEach(() => {
  registry = createMetrics("test");
  letters = [{ errorCode: "22003", count: 2 }];
  isDatabaseOut = false;
  isDatabaseUp = true;
  readers = [];
  readerQueries = 0;
  letterQueries = 0;
  answer = Promise.resolve();
  metrics = createWorkerMetrics(registry);
  exportWorkerState(registry, {
    isDatabaseOut: () => isDatabaseOut,
    isDatabaseUp: async () => isDatabaseUp,
    isRedisConnected: () => true,
    isStuck: () => false,
    async countOpenLetters() {
      letterQueries += 1;
      await answer;
      if (isDatabaseOut) throw new Error("down");
      return letters;
    },
    async listFeedReaders() {
      readerQueries += 1;
      await answer;
      return readers;
    },
  });
});

async function scrape(): Promise<string> {
  return (await registry.metrics()).replaceAll(',process="test"', "").replaceAll('process="test"', "");
}

test("events are counted by kind, outcome and partner, and those that are applied by the time since they came", async () => {
  metrics.countProcessed({ kind: "create", partner: "acme", outcome: "attempt-failed" });
  expect(await scrape()).toContain("booking_events_applied_timestamp_seconds{} 0\n");
  const startedAtS = Date.now() / 1_000;
  metrics.countProcessed({ kind: "create", partner: "acme", outcome: "created", queuedAtMs: Date.now() - 20_000 });
  metrics.countProcessed({ kind: null, partner: null, outcome: "dead" });
  const text = await scrape();
  expect(text).toContain('booking_events_processed_total{kind="create",outcome="created",partner="acme"} 1\n');
  expect(text).toContain('booking_events_processed_total{kind="unknown",outcome="dead",partner="unknown"} 1\n');
  expect(text).toContain('booking_events_apply_delay_seconds_bucket{le="10"} 0\n');
  expect(text).toContain('booking_events_apply_delay_seconds_bucket{le="30"} 1\n');
  expect(text).toContain("booking_events_apply_delay_seconds_count{} 1\n");
  const appliedAtS = Number(/^booking_events_applied_timestamp_seconds\{\} (.+)$/m.exec(text)?.[1]);
  expect(appliedAtS).toBeGreaterThanOrEqual(startedAtS);
});

test("a clock that is ahead makes no delay negative", async () => {
  metrics.countProcessed({ kind: "create", partner: "acme", outcome: "created", queuedAtMs: Date.now() + 60_000 });
  expect(await scrape()).toContain("booking_events_apply_delay_seconds_sum{} 0\n");
});

test("a queue full of invented partners makes a bounded number of series", async () => {
  for (let i = 0; i < 3_000; i += 1)
    metrics.countProcessed({ kind: "create", partner: `invented-${i}`, outcome: "created" });
  const series = (await scrape()).match(/^booking_events_processed_total.*$/gm) ?? [];
  expect(series).toHaveLength(1_001);
  expect(series.at(-1)).toContain('partner="other"} 2000');
});

test("shows the open dead letters by code, and the last known ones while PostgreSQL is down", async () => {
  expect(await scrape()).toContain('booking_events_dead_letters_open{code="22003"} 2\n');
  letters = [{ errorCode: "STALLED", count: 1 }];
  const text = await scrape();
  expect(text).toContain('booking_events_dead_letters_open{code="STALLED"} 1\n');
  expect(text).not.toContain('code="22003"');
  expect(text).toContain('booking_events_paused{dependency="postgresql"} 0\n');
  isDatabaseOut = true;
  const during = await scrape();
  expect(during).toContain('booking_events_dead_letters_open{code="STALLED"} 1\n');
  expect(during).toContain('booking_events_paused{dependency="postgresql"} 1\n');
  expect(during).toContain('booking_events_paused{dependency="redis"} 0\n');
});

test("asks nothing again while PostgreSQL has not answered the last scrape", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  answer = promise;
  await scrape();
  await scrape();
  expect([letterQueries, readerQueries]).toEqual([1, 1]);
  resolve();
  await promise;
  expect(await scrape()).toContain('booking_events_dead_letters_open{code="22003"} 2\n');
});

test("shows that PostgreSQL is down, whether or not an event has met that", async () => {
  expect(await scrape()).toContain("booking_events_database_up{} 1\n");
  isDatabaseUp = false;
  expect(await scrape()).toContain("booking_events_database_up{} 0\n");
  isDatabaseUp = true;
  isDatabaseOut = true;
  expect(await scrape()).toContain("booking_events_database_up{} 0\n");
});

const upToDate = {
  ...{ name: "invoices", lagChanges: 0, lagMs: 0, parked: 0, dead: 0 },
  ...{ failingSince: null, breakerOpenedAt: null, pausedAt: null },
};

test("shows how far each reader of the feed is behind, and the last known lag while PostgreSQL is down", async () => {
  readers = [{ ...upToDate, name: "arrivals", lagChanges: 12, lagMs: 90_500 }, upToDate];
  const text = await scrape();
  expect(text).toContain('booking_events_feed_reader_lag_seconds{reader="arrivals"} 90.5\n');
  expect(text).toContain('booking_events_feed_reader_lag_changes{reader="arrivals"} 12\n');
  expect(text).toContain('booking_events_feed_reader_lag_seconds{reader="invoices"} 0\n');
  expect(readerQueries).toBe(1);
  isDatabaseOut = true;
  expect(await scrape()).toContain('booking_events_feed_reader_lag_changes{reader="arrivals"} 12\n');
  expect(readerQueries).toBe(1);
  isDatabaseOut = false;
  readers = [];
  expect(await scrape()).not.toContain("reader=");
});

test("shows what a reader of the feed could not be given, and whether anything can be", async () => {
  const anHourAgo = new Date(Date.now() - 3_600_000);
  const failing = { parked: 3, dead: 2, failingSince: anHourAgo, breakerOpenedAt: anHourAgo, pausedAt: anHourAgo };
  readers = [{ ...upToDate, ...failing, name: "hook" }, upToDate];
  const text = await scrape();
  const valuesOf = (reader: string) =>
    Object.fromEntries(
      [...text.matchAll(new RegExp(`^booking_events_feed_reader_(\\w+){reader="${reader}"} (\\S+)$`, "gm"))].map(
        ([, name, value]) => [name, Number(value)],
      ),
    );
  const others = { lag_seconds: 0, lag_changes: 0 };
  const { failing_seconds: seconds, ...hook } = valuesOf("hook");
  expect(hook).toEqual({ ...others, parked: 3, dead_letters: 2, breaker_open: 1, paused: 1 });
  expect(seconds).toBeGreaterThanOrEqual(3_600);
  expect(valuesOf("invoices")).toEqual({
    ...{ ...others, parked: 0, dead_letters: 0, breaker_open: 0, paused: 0, failing_seconds: 0 },
  });
});
