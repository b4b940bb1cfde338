import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { stuckAfterMs, watchProgress } from "./watch-progress.ts";

function situation() {
  const facts = { waiting: 5, finished: 0, isWaitingForDatabase: false };
  const watch = watchProgress({
    countWaiting: async () => facts.waiting,
    countFinished: () => facts.finished,
    isWaitingForDatabase: () => facts.isWaitingForDatabase,
    logger: createLogger({ name: "test", level: "silent" }),
  });
  return { facts, watch };
}

test("a worker is stuck when events wait and none comes to an end for a minute, until one does", async () => {
  const { facts, watch } = situation();
  await watch.look(0);
  await watch.look(stuckAfterMs - 1);
  expect(watch.isStuck()).toBe(false);
  await watch.look(stuckAfterMs);
  expect(watch.isStuck()).toBe(true);
  facts.finished += 1;
  await watch.look(stuckAfterMs + 1);
  expect(watch.isStuck()).toBe(false);
});

test.each<[name: string, change: Partial<ReturnType<typeof situation>["facts"]>]>([
  ["nothing waits", { waiting: 0 }],
  ["the database is out", { isWaitingForDatabase: true }],
])("a worker is not stuck while %s", async (_, change) => {
  const { facts, watch } = situation();
  Object.assign(facts, change);
  for (let nowMs = 0; nowMs <= 3 * stuckAfterMs; nowMs += stuckAfterMs / 2) {
    await watch.look(nowMs);
    expect(watch.isStuck()).toBe(false);
  }
});

test("a worker is not stuck while events come to an end, however many wait", async () => {
  const { facts, watch } = situation();
  for (let nowMs = 0; nowMs <= 3 * stuckAfterMs; nowMs += stuckAfterMs / 2) {
    facts.finished += 1;
    await watch.look(nowMs);
    expect(watch.isStuck()).toBe(false);
  }
});
