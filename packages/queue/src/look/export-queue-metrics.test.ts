import { createMetrics, type Registry } from "@booking-events/runtime";
import { beforeEach, expect, test } from "vitest";
import { createDrainEstimator, exportQueueMetrics } from "./export-queue-metrics.ts";

const empty = {
  isComplete: true,
  waiting: 0,
  delayed: 0,
  held: 0,
  givenUp: 0,
  oldestAgeMs: 0,
  finished: 0,
  memoryShare: 0,
  isDurable: true,
  isPaused: false,
  workers: 1,
  clockAheadMs: 0,
};
let metrics: Registry;

beforeEach(() => {
  metrics = createMetrics("test");
});

async function scrape(): Promise<string> {
  return (await metrics.metrics()).replaceAll(/\{process="test"\}/g, "").replaceAll(',process="test"', "");
}

test("a scrape shows the state of the queue at that moment, and asks Redis once", async () => {
  let reads = 0;
  let waiting = 7;
  exportQueueMetrics(metrics, async () => {
    reads += 1;
    return {
      ...empty,
      waiting,
      delayed: 1,
      held: 2,
      givenUp: 3,
      oldestAgeMs: 1_500,
      memoryShare: 0.25,
      isPaused: true,
      clockAheadMs: -2_500,
    };
  });
  const first = await scrape();
  expect(reads).toBe(1);
  for (const line of [
    'booking_events_backlog{state="waiting"} 7',
    'booking_events_backlog{state="delayed"} 1',
    'booking_events_backlog{state="held"} 2',
    'booking_events_backlog{state="given-up"} 3',
    "booking_events_backlog_oldest_age_seconds 1.5",
    "booking_events_redis_memory_ratio 0.25",
    "booking_events_redis_up 1",
    "booking_events_redis_durable 1",
    "booking_events_queue_paused 1",
    "booking_events_workers 1",
    "booking_events_redis_clock_ahead_seconds -2.5",
  ]) {
    expect(first).toContain(`${line}\n`);
  }
  waiting = 8;
  expect(await scrape()).toContain('booking_events_backlog{state="waiting"} 8\n');
});

test("while Redis does not answer, the last figures stay, and none is invented", async () => {
  let isDown = true;
  exportQueueMetrics(metrics, async () => {
    if (isDown) throw new Error("down");
    return { ...empty, waiting: 7 };
  });
  const before = await scrape();
  expect(before).toContain("booking_events_redis_up 0\n");
  expect(before).not.toMatch(/^booking_events_backlog\{/m);
  expect(before).toMatch(/^booking_events_backlog_oldest_age_seconds nan$/im);
  isDown = false;
  await scrape();
  isDown = true;
  const after = await scrape();
  expect(after).toContain('booking_events_backlog{state="waiting"} 7\n');
  expect(after).toContain("booking_events_redis_up 0\n");
});

test("the drain is estimated by the rate at which events were finished in the last two minutes", () => {
  const estimate = createDrainEstimator();
  expect(estimate({ waiting: 100, finished: 0 }, 0)).toBeNaN();
  expect(estimate({ waiting: 0, finished: 0 }, 5_000)).toBe(0);
  expect(estimate({ waiting: 100, finished: 0 }, 10_000)).toBe(Number.POSITIVE_INFINITY);
  expect(estimate({ waiting: 100, finished: 200 }, 20_000)).toBe(10);
  // What is older than two minutes no longer counts.
  expect(estimate({ waiting: 100, finished: 300 }, 140_000)).toBe(120);
  // Redis has lost its data.
  expect(estimate({ waiting: 100, finished: 5 }, 150_000)).toBeNaN();
  expect(estimate({ waiting: 100, finished: 105 }, 160_000)).toBe(10);
});
