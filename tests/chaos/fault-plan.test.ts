import { describe, expect, test } from "vitest";
import { lengthMs, planFaults, scenarioMs, scenarios } from "./fault-plan.ts";
import { inventHistories } from "./histories.ts";
import { createRandom } from "./random.ts";

const minuteMs = 60_000;

test("the same seed gives the same faults and the same posts, another seed gives others", () => {
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

test("in the long run everything is killed and frozen and has a wrong clock but webhooks, Redis' is set, the certificate expires", () => {
  const faults = planFaults(createRandom(1, "faults"), 30 * minuteMs);
  const hits = new Set(faults.map(({ target, action }) => `${target} ${action}`));
  expect(hits.size).toBe(7 * 3 + 2 * 2 + 2);
});

test("wrong clocks are so far from right that nobody may work with them", () => {
  const faults = planFaults(createRandom(1, "faults"), 30 * minuteMs).filter(({ action }) => action === "wrong clock");
  const sizes = faults.map((fault) => ("aheadMs" in fault ? fault.aheadMs : 0));
  expect(Math.min(...sizes.map(Math.abs))).toBeGreaterThan(5 * minuteMs);
  expect([Math.min(...sizes) < 0, Math.max(...sizes) > 0]).toEqual([true, true]);
});

describe("Redis' clock", () => {
  const faults = planFaults(createRandom(1, "faults"), 30 * minuteMs);
  const settings = faults.filter((fault) => fault.action === "set clock");
  const steps = settings.map(({ atMs, aheadMs }, index) => ({
    atMs,
    byMs: aheadMs - (settings[index - 1]?.aheadMs ?? 0),
  }));

  test("is set forward and back, by some seconds and by more than a minute", () => {
    for (const sign of [1, -1]) {
      const sizes = steps.map(({ byMs }) => sign * byMs).filter((byMs) => byMs > 0);
      expect(Math.min(...sizes)).toBeLessThan(15_000);
      expect(Math.max(...sizes)).toBeGreaterThan(minuteMs);
    }
  });

  test("is never so far ahead that ingest refuses events for it", () => {
    for (const { aheadMs } of settings) expect(Math.abs(aheadMs)).toBeLessThan(2 * minuteMs);
  });

  test("is set back while Redis is frozen, but by much more than the freeze, since ingest can't notice less", () => {
    const freezes = faults.filter((fault) => fault.action === "freeze" && fault.target === "redis");
    const whileFrozen = steps.filter(({ atMs }) =>
      freezes.some((freeze) => freeze.atMs <= atMs && atMs <= freeze.atMs + lengthMs(freeze)),
    );
    expect(whileFrozen.length).toBeGreaterThan(0);
    for (const { byMs } of whileFrozen) expect(byMs).toBeLessThan(-minuteMs);
  });
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
