import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { gatherPerTurn } from "./gather-per-turn.ts";

test("items of one turn of the event loop share one call, and each gets its own result", async () => {
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

test("no call gets more than the maximum of items", async () => {
  const calls: number[][] = [];
  const double = gatherPerTurn(
    async (numbers: number[]) => {
      calls.push(numbers);
      return numbers.map((number) => number * 2);
    },
    { maxItems: 2 },
  );
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

test("while the maximum of calls is in progress, items are gathered for the next call", async () => {
  const calls: { items: string[]; end: () => void; fail: () => void }[] = [];
  const wait = gatherPerTurn(
    async (items: string[]) => {
      await new Promise<void>((resolve, reject) =>
        calls.push({ items, end: resolve, fail: () => reject(new Error()) }),
      );
      return items;
    },
    { underWay: { maxCalls: 2, maxWaitMs: 60_000 } },
  );
  const results: Promise<unknown>[] = [];
  for (const item of ["a", "b", "c", "d"]) {
    results.push(wait(item).catch(() => "failed"));
    await nextTurn();
  }
  expect(calls.map(({ items }) => items)).toEqual([["a"], ["b"]]);
  calls[1]?.fail();
  await nextTurn();
  await nextTurn();
  expect(calls.map(({ items }) => items)).toEqual([["a"], ["b"], ["c", "d"]]);
  for (const { end } of calls) end();
  expect(await Promise.all(results)).toEqual(["a", "failed", "c", "d"]);
});

test("a call that takes too long delays no other", async () => {
  const calls: string[][] = [];
  const neverEnding = gatherPerTurn(
    (items: string[]) => {
      calls.push(items);
      return new Promise<string[]>(() => {});
    },
    { underWay: { maxCalls: 1, maxWaitMs: 20 } },
  );
  for (const item of ["a", "b", "c"]) {
    void neverEnding(item);
    await nextTurn();
  }
  await vi.waitFor(() => expect(calls).toEqual([["a"], ["b", "c"]]));
});

test("when a call fails, each of its items fails, and the next call is not affected", async () => {
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
