import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { stuckAfterMs, watchProgress } from "./watch-progress.ts";

function createWatch() {
  const facts = { waiting: 5, finished: 0, isWaitingForDatabase: false, isPaused: false };
  const watch = watchProgress({
    countWaiting: async () => facts.waiting,
    countFinished: () => facts.finished,
    isWaitingForDatabase: () => facts.isWaitingForDatabase,
    isPaused: () => facts.isPaused,
    logger: createLogger({ name: "test", level: "silent" }),
  });
  return { facts, watch };
}

test("a worker is stuck if events wait and none is finished for a minute, until one is", async () => {
  const { facts, watch } = createWatch();
  await watch.look(0);
  await watch.look(stuckAfterMs - 1);
  expect(watch.isStuck()).toBe(false);
  await watch.look(stuckAfterMs);
  expect(watch.isStuck()).toBe(true);
  facts.finished += 1;
  await watch.look(stuckAfterMs + 1);
  expect(watch.isStuck()).toBe(false);
});

test.each<[name: string, change: Partial<ReturnType<typeof createWatch>["facts"]>]>([
  ["nothing waits", { waiting: 0 }],
  ["the database is unavailable", { isWaitingForDatabase: true }],
  ["the queue is paused", { isPaused: true }],
])("a worker is not stuck while %s", async (_, change) => {
  const { facts, watch } = createWatch();
  Object.assign(facts, change);
  for (let nowMs = 0; nowMs <= 3 * stuckAfterMs; nowMs += stuckAfterMs / 2) {
    await watch.look(nowMs);
    expect(watch.isStuck()).toBe(false);
  }
});

test("a worker is not stuck while events are finished, however many wait", async () => {
  const { facts, watch } = createWatch();
  for (let nowMs = 0; nowMs <= 3 * stuckAfterMs; nowMs += stuckAfterMs / 2) {
    facts.finished += 1;
    await watch.look(nowMs);
    expect(watch.isStuck()).toBe(false);
  }
});
