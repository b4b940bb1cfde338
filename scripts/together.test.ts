import { once } from "node:events";
import { expect, test } from "vitest";
import { together } from "./together.ts";

test("tasks that all succeed resolve to their results, in order", async () => {
  const results = await together(new AbortController().signal, [async () => 1, async () => "two"]);
  expect(results).toEqual([1, "two"]);
});

test("when one fails, the others are told to stop and have ended before the first failure is thrown", async () => {
  const log: string[] = [];
  const tasks = together(new AbortController().signal, [
    async () => {
      throw new Error("first");
    },
    async (signal) => {
      if (!signal.aborted) await once(signal, "abort");
      await Promise.resolve();
      log.push("ended");
      throw new Error("second");
    },
  ]);
  await expect(tasks).rejects.toThrow("first");
  expect(log).toEqual(["ended"]);
});
