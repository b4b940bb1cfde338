import { waitFor } from "@booking-events/scripts/testing";
import { createLogger, createMetrics } from "@booking-events/service";
import { expect, test } from "vitest";
import { type LoadShedder, watchLoad } from "./shed-load.ts";

const limits = { maxBacklog: 100, memoryHighWater: 0.7, maxEventLoopDelayMs: 250 };

async function watch(load: { backlog: number; memoryShare: number }): Promise<LoadShedder> {
  return watchLoad({
    measureLoad: async () => load,
    limits,
    logger: createLogger({ name: "test", level: "silent" }),
    metrics: createMetrics("test"),
  });
}

test.each([
  ["backlog", "MAX_BACKLOG", { backlog: 101, memoryShare: 0 }, { backlog: 91 }, { backlog: 90 }],
  ["memory", "REDIS_MEMORY_HIGH_WATER", { backlog: 0, memoryShare: 0.71 }, { memoryShare: 0.64 }, { memoryShare: 0.6 }],
])("%s: events are refused over the limit, until it is well below it", async (_, name, over, stillOver, below) => {
  const load = { ...over };
  const shedder = await watch(load);
  try {
    expect(shedder.isOverloaded()).toBe(true);
    expect(shedder.warnings()).toEqual([expect.stringContaining(name)]);
    const before = shedder.warnings();
    Object.assign(load, stillOver);
    // Until it has looked again.
    await waitFor(() => expect(shedder.warnings()).not.toEqual(before));
    expect(shedder.isOverloaded()).toBe(true);
    Object.assign(load, below);
    await waitFor(() => !shedder.isOverloaded());
    expect(shedder.warnings()).toEqual([]);
  } finally {
    shedder.stop();
  }
});

test("at the limit nothing is refused", async () => {
  const shedder = await watch({ backlog: 100, memoryShare: 0.7 });
  shedder.stop();
  expect(shedder.isOverloaded()).toBe(false);
});

test("a process that can't keep up refuses, and accepts again when it can", async () => {
  const shedder = await watch({ backlog: 0, memoryShare: 0 });
  try {
    await waitFor(() => {
      const endAtMs = performance.now() + 600;
      while (performance.now() < endAtMs);
      return shedder.isOverloaded();
    });
    expect(shedder.warnings()).toEqual([expect.stringContaining("behind by")]);
    await waitFor(() => !shedder.isOverloaded());
  } finally {
    shedder.stop();
  }
});
