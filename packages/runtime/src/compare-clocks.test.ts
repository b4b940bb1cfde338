import { describe, expect, test } from "vitest";
import { ClockLimit, describeDifference, maxClockDifferenceMs } from "./clock-limit.ts";
import { ClockComparison } from "./compare-clocks.ts";

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

/** @param aheadMs of this host's clock */
function times(aheadMs: { redis: number; postgresql: number }, newestEventMs: number | null = null) {
  return {
    postgresql: { clockAheadMs: aheadMs.postgresql, newestEventMs },
    redis: [{ clockAheadMs: aheadMs.redis, newestEventMs: null }],
  };
}

function compare(...args: Parameters<typeof times>): string | null {
  return new ClockComparison().findProblem(times(...args));
}

describe("a comparison of clocks", () => {
  test.each([
    { redis: 0, postgresql: 0 },
    { redis: 4 * minute, postgresql: 0 },
    { redis: 4 * minute, postgresql: 2 * minute },
    { redis: -4 * minute, postgresql: -4 * minute },
  ])("finds nothing in clocks that differ by less than five minutes: %o", (clocks) => {
    expect(compare(clocks)).toBe(null);
  });

  test.each([
    [
      { redis: 100, postgresql: 440 * day },
      "PostgreSQL's clock is 440 days ahead of Redis' and this host's. Correct it: timedatectl set-ntp true",
    ],
    [
      { redis: -2 * hour - minute, postgresql: 0 },
      "Redis' clock is 2 hours behind PostgreSQL's and this host's. Correct it: timedatectl set-ntp true",
    ],
    [
      { redis: -3 * day, postgresql: -3 * day },
      "This host's clock is 3 days ahead of PostgreSQL's and Redis'. Correct it: timedatectl set-ntp true",
    ],
    [
      { redis: -3 * minute, postgresql: 4 * minute },
      "PostgreSQL's clock is 7 minutes ahead of Redis' and this host's. Correct it: timedatectl set-ntp true",
    ],
    [
      { redis: -day, postgresql: day },
      "Redis' clock is 2 days behind PostgreSQL's. Correct the wrong clock: timedatectl set-ntp true",
    ],
  ])("says which one is wrong: %o", (clocks, sentence) => {
    expect(compare(clocks)).toBe(sentence);
  });

  test.each([
    [{ redis: 0, postgresql: 0 }, false],
    [{ redis: 3 * day, postgresql: 0 }, false],
    [{ redis: -3 * day, postgresql: 3 * day }, false],
    [{ redis: 3 * day, postgresql: 3 * day + minute }, true],
    [{ redis: -6 * minute, postgresql: -6 * minute }, true],
  ])("tells whether this host's clock is the wrong one: %o", (clocks, isWrong) => {
    const comparison = new ClockComparison();
    comparison.findProblem(times(clocks));
    expect(comparison.isHostWrong).toBe(isWrong);
    comparison.findProblem(times({ redis: 0, postgresql: 0 }));
    expect(comparison.isHostWrong).toBe(false);
  });

  test.each([
    [7 * minute, "Redis' clock is 7 minutes ahead of this host's. Correct the wrong clock: timedatectl set-ntp true"],
    [-7 * minute, "Redis' clock is 7 minutes behind this host's. Correct the wrong clock: timedatectl set-ntp true"],
  ])("cannot say which of two clocks is wrong: %d", (clockAheadMs, sentence) => {
    const redis = [{ clockAheadMs, newestEventMs: null }];
    expect(new ClockComparison().findProblem({ postgresql: undefined, redis })).toBe(sentence);
  });

  test("finds that an event was received later than now, and nothing in an old one", () => {
    const now = Date.now();
    expect(compare({ redis: 0, postgresql: 0 }, now - 500 * day)).toBe(null);
    expect(compare({ redis: 0, postgresql: 0 }, now + 4 * minute)).toBe(null);
    expect(compare({ redis: 0, postgresql: 0 }, now + 3 * hour + minute)).toMatch(
      /^The newest event was received 3 hours later than this host's clock shows\./,
    );
    expect(compare({ redis: -4 * minute, postgresql: 0 }, now + 3 * minute + 1_000)).toMatch(
      /^The newest event was received 7 minutes later than Redis' clock shows\./,
    );
  });

  test("says the same of two clocks near the limit whatever the last measurement was", () => {
    const comparison = new ClockComparison();
    const find = (redis: number) => comparison.findProblem(times({ redis, postgresql: 0 }));
    const said = [1, -1, 2, -2, -20_000].map((jitterMs) => find(maxClockDifferenceMs + jitterMs));
    expect(new Set(said)).toEqual(new Set([expect.stringMatching(/^Redis' clock is 5 minutes ahead/)]));
    expect(find(4 * minute)).toBe(null);
    expect(find(maxClockDifferenceMs - 1)).toBe(null);
  });
});

describe("a limit of the difference between two clocks", () => {
  test("reports another figure only when the one before is clearly wrong", () => {
    const limit = new ClockLimit();
    expect([7, 6.9, 6, 7.9, 8.1, 7.2].map((minutes) => limit.judge(minutes * minute))).toEqual(
      [7, 7, 7, 7, 8.1, 8.1].map((minutes) => minutes * minute),
    );
    expect(limit.judge(440 * day)).toBe(440 * day);
    expect(limit.judge(441 * day)).toBe(440 * day);
    expect(limit.judge(-7 * minute)).toBe(-7 * minute);
  });
});

test("a difference is described in the largest unit of which there are about two", () => {
  expect([90_000, 110 * minute, 2 * hour - 1, 45 * hour, 2 * day - 1].map(describeDifference)).toEqual([
    "90 seconds",
    "110 minutes",
    "2 hours",
    "45 hours",
    "2 days",
  ]);
});
