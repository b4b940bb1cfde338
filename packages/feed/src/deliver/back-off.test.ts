import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultRetryPolicy, pauseAfter } from "./back-off.ts";

const [secondMs, minuteMs, hourMs] = [1_000, 60_000, 3_600_000];

test.each([
  [1, 5 * secondMs],
  [2, 10 * secondMs],
  [8, 640 * secondMs],
  [12, 10_240 * secondMs],
  [13, 4 * hourMs],
  [28, 4 * hourMs],
])("the longest pause after attempt %i is %i ms by default", (attempt, pauseMs) => {
  expect(pauseAfter(attempt, defaultRetryPolicy, 0)).toBe(pauseMs);
});

test("the attempts end after three days by default", () => {
  let spentMs = 0;
  let attempts = 1;
  for (; ; attempts += 1) {
    const pauseMs = pauseAfter(attempts, defaultRetryPolicy, 0);
    if (pauseMs === null) break;
    spentMs += pauseMs;
  }
  expect(attempts).toBe(30);
  expect(spentMs).toBeGreaterThanOrEqual(72 * hourMs);
  expect(spentMs).toBeLessThan(76 * hourMs + minuteMs);
});

test("no attempt is made once the pauses have come exactly to the limit", () => {
  const policy = { firstPauseMs: secondMs, longestPauseMs: secondMs, giveUpAfterMs: 2 * secondMs };
  expect([1, 2, 3].map((attempts) => pauseAfter(attempts, policy, 0))).toEqual([secondMs, secondMs, null]);
});

const policies = fc
  .record({ firstPauseMs: fc.nat(10_000), longestPauseMs: fc.nat(100_000), giveUpAfterMs: fc.nat(1_000_000) })
  .filter(({ firstPauseMs, longestPauseMs }) => firstPauseMs > 0 && longestPauseMs >= firstPauseMs);

test("a pause is never longer than the longest, and at most a fifth shorter by chance", () => {
  fc.assert(
    fc.property(
      policies,
      fc.integer({ min: 1, max: 60 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (policy, attempt, chance) => {
        const [full, pauseMs] = [pauseAfter(attempt, policy, 0), pauseAfter(attempt, policy, chance)];
        if (full === null || pauseMs === null) {
          expect(pauseMs).toBe(full);
          return;
        }
        expect(pauseMs).toBeLessThanOrEqual(full);
        expect(pauseMs).toBeGreaterThanOrEqual(Math.floor(full * 0.8));
        expect(full).toBeLessThanOrEqual(policy.longestPauseMs);
        expect(full).toBeGreaterThanOrEqual(policy.firstPauseMs);
      },
    ),
  );
});

test("once the attempts have ended, they stay so", () => {
  fc.assert(
    fc.property(policies, fc.integer({ min: 1, max: 60 }), (policy, attempt) => {
      if (pauseAfter(attempt, policy, 0) === null) expect(pauseAfter(attempt + 1, policy, 0)).toBeNull();
    }),
  );
});
