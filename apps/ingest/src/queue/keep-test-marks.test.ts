import { sampleEvent } from "@booking-events/harness/sample-event";
import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
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
