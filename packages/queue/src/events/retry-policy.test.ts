import { expect, test } from "vitest";
import { maxAttempts, retryDelayMs } from "./retry-policy.ts";

const longestDelaysMs = Array.from({ length: maxAttempts - 1 }, (_, index) => retryDelayMs(index + 1, 1));

test("the longest delays match the documented table", () => {
  expect(longestDelaysMs.map((delayMs) => delayMs / 1_000)).toEqual([
    1, 3, 9, 27, 81, 243, 729, 2187, 6561, 14_400, 14_400, 14_400, 14_400, 14_400,
  ]);
});

test("an event is tried at least 12 times over about a day", () => {
  const totalHours = longestDelaysMs.reduce((sum, delayMs) => sum + delayMs, 0) / 3_600_000;
  expect(maxAttempts).toBeGreaterThanOrEqual(12);
  expect(totalHours).toBeGreaterThan(20);
  expect(totalHours).toBeLessThan(26);
});

test("jitter reduces a delay by at most half", () => {
  expect(retryDelayMs(3, 0)).toBe(4_500);
  expect(retryDelayMs(3, 0.999999)).toBe(9_000);
});
