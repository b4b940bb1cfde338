import { createLogger, createMetrics } from "@booking-events/service";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type FreezeWatch, freezeLimits, watchFreezes } from "./watch-freezes.ts";

const { tickIntervalMs, longestUnnoticedMs, refusalMs } = freezeLimits;

let monotonicMs: number;
let wallMs: number;
let watch: FreezeWatch;
let metrics: ReturnType<typeof createMetrics>;
const warn = vi.fn();

beforeEach(() => {
  [monotonicMs, wallMs] = [5_000, 1_800_000_000_000];
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  vi.spyOn(performance, "now").mockImplementation(() => monotonicMs);
  vi.spyOn(Date, "now").mockImplementation(() => wallMs);
  metrics = createMetrics("test");
  const logger = createLogger({ name: "test", level: "silent" });
  vi.spyOn(logger, "warn").mockImplementation(warn);
  watch = watchFreezes({ logger, metrics });
});

afterEach(() => {
  watch.stop();
  warn.mockReset();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Time goes by, and nothing of this process runs. */
function freeze(ms: number): void {
  monotonicMs += ms;
  wallMs += ms;
}

function run(ms: number): void {
  for (let passedMs = 0; passedMs < ms; passedMs += tickIntervalMs) {
    freeze(tickIntervalMs);
    vi.advanceTimersByTime(tickIntervalMs);
  }
}

test("while the process runs, it was not frozen", () => {
  run(10_000);
  freeze(longestUnnoticedMs);
  expect(watch.wasFrozen()).toBe(false);
  expect(warn).not.toHaveBeenCalled();
});

test("the first request after a freeze sees it, before any timer has run", () => {
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen()).toBe(true);
});

test("for a second after a freeze everything is refused, as others waited too", () => {
  freeze(3_000);
  run(refusalMs - tickIntervalMs);
  expect(watch.wasFrozen()).toBe(true);
  run(tickIntervalMs * 2);
  expect(watch.wasFrozen()).toBe(false);
});

test("the second counts from the last freeze, and one that follows another is logged and counted with it", async () => {
  freeze(3_000);
  expect(watch.wasFrozen()).toBe(true);
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen()).toBe(true);
  run(refusalMs - 2 * tickIntervalMs);
  expect(watch.wasFrozen()).toBe(true);
  run(tickIntervalMs * 3);
  expect(watch.wasFrozen()).toBe(false);
  expect(warn.mock.calls).toEqual([[{ frozenMs: 3_000 }, expect.any(String)]]);
  expect((await metrics.getSingleMetric("ingest_freezes_total")?.get())?.values).toMatchObject([{ value: 1 }]);
});

test("a suspended machine, whose monotonic clock stood still, is noticed by the other one", () => {
  wallMs += longestUnnoticedMs + 1;
  expect(watch.wasFrozen()).toBe(true);
  run(refusalMs);
  expect(watch.wasFrozen()).toBe(false);
});

test("a clock that is set back is no freeze, and hides none", () => {
  wallMs -= 3_600_000;
  expect(watch.wasFrozen()).toBe(false);
  run(tickIntervalMs);
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen()).toBe(true);
});
