import { createLogger } from "@booking-events/runtime";
import type { Maintained } from "@booking-events/store";
import { describe, expect, test } from "vitest";
import { maintainRegularly } from "./maintain-regularly.ts";

const nothing: Maintained = {
  removed: { booking_events: 0, booking_changes: 0, bookings: 0, dead_letters: 0, operator_actions: 0 },
  removedOpenLetters: 0,
  createdPartitions: [],
  droppedPartitions: [],
  problems: [],
  hasMore: false,
  isLocked: false,
  isBusy: false,
};

/** @returns how long it waits after each of the runs */
async function delaysAfter(...runs: (Partial<Maintained> | Error)[]): Promise<number[]> {
  const stopping = new AbortController();
  const delaysMs: number[] = [];
  await maintainRegularly({
    async maintain() {
      const run = runs[delaysMs.length];
      if (run instanceof Error) throw run;
      return { ...nothing, ...run };
    },
    estimateDefaultPartition: async () => 0,
    metrics: { record() {} },
    logger: createLogger({ name: "test", level: "info" }, { write() {} }),
    signal: stopping.signal,
    async sleep(delayMs) {
      delaysMs.push(delayMs);
      if (delaysMs.length === runs.length) stopping.abort();
    },
  });
  return delaysMs;
}

describe("the next run comes", () => {
  test("soon if there is more to do", async () => {
    expect(await delaysAfter({ hasMore: true }, {})).toEqual([10_000, 600_000]);
  });

  test("no sooner because of an error, a problem or a lock", async () => {
    expect(await delaysAfter(new Error("broken"), { problems: ["a problem"] }, { isLocked: true })).toEqual([
      600_000, 600_000, 600_000,
    ]);
  });
});
