import { expect, test } from "vitest";
import { quantile, ratiosByRound, spreadOf } from "./statistics.ts";

test("a quantile lies between the two values that surround it, whatever their order", () => {
  expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
  expect(quantile([10, 2, 9], 0.5)).toBe(9);
  expect(quantile([5], 0.99)).toBe(5);
  const hundred = Array.from({ length: 101 }, (_, index) => 100 - index);
  expect(quantile(hundred, 0.99)).toBe(99);
});

test("a spread names the middle round, the worst and the best", () => {
  expect(spreadOf([1.2, 0.9, 1.1])).toEqual({ median: 1.1, min: 0.9, max: 1.2 });
});

test("a round that was slow for everybody does not change the ratio", () => {
  expect(ratiosByRound([100, 50, 200], [50, 25, 100])).toEqual([2, 2, 2]);
  expect(() => ratiosByRound([1, 2], [1])).toThrow("each round");
});

test("no values have no quantile", () => {
  expect(() => quantile([], 0.5)).toThrow("no values");
});
