import { expect, test } from "vitest";
import { lengthMs, planFaults, scenarioMs, scenarios } from "./fault-plan.ts";
import { inventHistories } from "./histories.ts";
import { createRandom } from "./random.ts";

const minuteMs = 60_000;

test("the same seed gives the same faults and the same posts, another seed others", () => {
  const plan = (seed: number) => planFaults(createRandom(seed, "faults"), minuteMs);
  const posts = (seed: number) => {
    const histories = inventHistories(createRandom(seed, "histories"));
    return Array.from({ length: 1_000 }, () => histories.next().value);
  };
  expect(plan(1)).toEqual(plan(1));
  expect(plan(1)).not.toEqual(plan(2));
  expect(posts(1)).toEqual(posts(1));
  expect(posts(1)).not.toEqual(posts(2));
});

test("in the long run everything is killed and frozen", () => {
  const faults = planFaults(createRandom(1, "faults"), 10 * minuteMs);
  const hits = new Set(faults.map(({ target, action }) => `${target} ${action}`));
  expect(hits.size).toBe(7 * 2);
});

test("a target of a random fault is left alone until it has recovered", () => {
  const knownEndMs = Object.keys(scenarios).length * scenarioMs;
  const faults = planFaults(createRandom(1, "faults"), 10 * minuteMs).filter(({ atMs }) => atMs >= knownEndMs);
  for (const sameTarget of Map.groupBy(faults, ({ target }) => target).values()) {
    for (const [index, before] of sameTarget.slice(0, -1).entries()) {
      expect(sameTarget[index + 1]?.atMs).toBeGreaterThan(before.atMs + lengthMs(before));
    }
  }
});
