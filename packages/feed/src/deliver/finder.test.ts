import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Finder, gatherMs } from "./finder.ts";
import type { Found, Wanted } from "./read-deliveries.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

function startFinder() {
  const reads: { names: string[]; answer: () => void }[] = [];
  const finder = new Finder(
    (wanted) =>
      new Promise((resolve) => {
        const found = wanted.map(({ name }) => ({ name }) as unknown as Found);
        reads.push({ names: wanted.map(({ name }) => name), answer: () => resolve(found) });
      }),
  );
  const find = (name: string, mayWait: boolean) => finder.find({ name } as Wanted, { mayWait });
  return { find, reads, namesRead: () => reads.map(({ names }) => names) };
}

test("what may not wait is read at once, together with all else that waits", async () => {
  const { find, reads, namesRead } = startFinder();
  void find("a", true);
  const b = find("b", false);
  await setImmediate();
  expect(namesRead()).toEqual([["a", "b"]]);
  reads[0]?.answer();
  expect(await b).toEqual({ name: "b" });
  await vi.advanceTimersByTimeAsync(gatherMs);
  void find("c", true);
  await setImmediate();
  expect(namesRead()).toEqual([["a", "b"]]);
});

test("what may not wait is read once, however much of it comes together", async () => {
  const { find, namesRead } = startFinder();
  void find("a", false);
  void find("b", false);
  await setImmediate();
  await setImmediate();
  expect(namesRead()).toEqual([["a", "b"]]);
});

test("an error is that of all who wait, and the next are read again", async () => {
  const failure = new Error("PostgreSQL is away");
  const read = vi.fn().mockRejectedValueOnce(failure).mockResolvedValue(["found"]);
  const finder = new Finder(read);
  const find = () => finder.find({} as Wanted, { mayWait: false });
  const both = [find(), find()];
  await expect(both[0]).rejects.toBe(failure);
  await expect(both[1]).rejects.toBe(failure);
  expect(await find()).toBe("found");
});

test("what may wait does so for others, but not for long", async () => {
  const { find, namesRead } = startFinder();
  void find("a", true);
  await setImmediate();
  void find("b", true);
  await vi.advanceTimersByTimeAsync(gatherMs - 1);
  expect(namesRead()).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(namesRead()).toEqual([["a", "b"]]);
});

test("what comes during a read is read after it, at once if it has waited long enough", async () => {
  const { find, reads, namesRead } = startFinder();
  const a = find("a", false);
  await setImmediate();
  void find("b", true);
  void find("c", true);
  await vi.advanceTimersByTimeAsync(gatherMs);
  expect(namesRead()).toEqual([["a"]]);
  reads[0]?.answer();
  await a;
  await setImmediate();
  expect(namesRead()).toEqual([["a"], ["b", "c"]]);
});
