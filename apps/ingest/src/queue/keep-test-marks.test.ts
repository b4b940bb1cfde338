import { sampleEvent } from "@booking-events/harness/sample-event";
import { createLogger } from "@booking-events/runtime";
import { expect, onTestFinished, test, vi } from "vitest";
import { TestMarks } from "./keep-test-marks.ts";

test("the warning about a changed mark ends when the partners file is corrected, before another event arrives", async () => {
  let isTest = true;
  const marks = new TestMarks({
    claim: async () => false,
    isTest: () => isTest,
    logger: createLogger({ name: "test", level: "silent" }),
  });
  const enqueue = marks.guard(async () => 1);
  await expect(enqueue(sampleEvent(1, { test: true }))).rejects.toMatchObject({
    name: "TestMarkDiffers",
  });
  expect(marks.warnings()).toEqual([expect.stringContaining(": acme.")]);
  isTest = false;
  expect(marks.warnings()).toEqual([]);
});

test("an event does not wait long for its partner's mark, and a late mark is kept for the next event", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const claim = vi.fn(() => new Promise<boolean>((resolve) => setTimeout(resolve, 600, false)));
  const marks = new TestMarks({
    claim,
    isTest: () => false,
    logger: createLogger({ name: "test", level: "silent" }),
  });
  const enqueue = marks.guard(async () => 1);
  const first = expect(enqueue(sampleEvent(1))).rejects.toMatchObject({ name: "DeadlineExceeded" });
  await vi.advanceTimersByTimeAsync(599);
  await first;
  await vi.advanceTimersByTimeAsync(1);
  expect(await enqueue(sampleEvent(2))).toBe(1);
  expect(claim).toHaveBeenCalledOnce();
});
