import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { gatherPerTurn } from "./gather-per-turn.ts";

test("what comes within one turn of the event loop is one call, and each gets its own result", async () => {
  const calls: number[][] = [];
  const double = gatherPerTurn(async (numbers: number[]) => {
    calls.push(numbers);
    return numbers.map((number) => number * 2);
  });
  const first = Promise.all([double(1), double(2), Promise.resolve().then(() => double(3))]);
  await nextTurn();
  expect(await Promise.all([first, double(4)])).toEqual([[2, 4, 6], 8]);
  expect(calls).toEqual([[1, 2, 3], [4]]);
});

test("no call gets more items than it may", async () => {
  const calls: number[][] = [];
  const double = gatherPerTurn(async (numbers: number[]) => {
    calls.push(numbers);
    return numbers.map((number) => number * 2);
  }, 2);
  expect(await Promise.all([1, 2, 3, 4, 5].map(double))).toEqual([2, 4, 6, 8, 10]);
  expect(calls).toEqual([[1, 2], [3, 4], [5]]);
});

test("a call does not wait for the one before it", async () => {
  const releases: (() => void)[] = [];
  const wait = gatherPerTurn(async (names: string[]) => {
    await new Promise<void>((resolve) => releases.push(resolve));
    return names;
  });
  const first = wait("first");
  await nextTurn();
  const second = wait("second");
  await nextTurn();
  releases[1]?.();
  expect(await second).toBe("second");
  releases[0]?.();
  expect(await first).toBe("first");
});

test("when a call fails, each of its items does, and the next call is a new one", async () => {
  let fails = true;
  const attempt = gatherPerTurn(async (items: string[]) => {
    if (fails) throw new Error("Redis is away.");
    return items;
  });
  const results = await Promise.allSettled([attempt("a"), attempt("b")]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  fails = false;
  expect(await attempt("c")).toBe("c");
});
