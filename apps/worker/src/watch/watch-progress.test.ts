import { DelayDelivery, ReleaseDelivery } from "@booking-events/queue";
import { createLogger } from "@booking-events/runtime";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AttemptFailed } from "../deliver/process-delivery.ts";
import { ProgressWatch, progressIntervalMs, stuckAfterMs } from "./watch-progress.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function createWatch({ waiting = 5 } = {}) {
  const queue = { readState: async () => ({ waiting }) };
  return new ProgressWatch(queue, createLogger({ name: "test", level: "silent" }));
}

test("a worker is stuck if events wait and none is finished for a minute, until one is", async () => {
  const watch = createWatch();
  await watch.look(false);
  vi.advanceTimersByTime(stuckAfterMs - 1);
  await watch.look(false);
  expect(watch.isStuck()).toBe(false);
  vi.advanceTimersByTime(1);
  await watch.look(false);
  expect(watch.isStuck()).toBe(true);
  await watch.follow(Promise.resolve());
  await watch.look(false);
  expect(watch.isStuck()).toBe(false);
});

test("a worker is not stuck because Redis answered late, with what had come meanwhile", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<{ waiting: number }>();
  const readState = vi.fn(async () => ({ waiting: 0 }));
  const watch = new ProgressWatch({ readState }, createLogger({ name: "test", level: "silent" }));
  await watch.look(false);
  readState.mockReturnValueOnce(answered);
  const looked = watch.look(false);
  vi.advanceTimersByTime(2 * stuckAfterMs);
  answer({ waiting: 5 });
  await looked;
  vi.advanceTimersByTime(progressIntervalMs);
  readState.mockResolvedValue({ waiting: 5 });
  await watch.look(false);
  expect(watch.isStuck()).toBe(false);
  vi.advanceTimersByTime(stuckAfterMs);
  await watch.look(false);
  expect(watch.isStuck()).toBe(true);
});

test("a worker is not stuck because the host's clock was set", async () => {
  const watch = createWatch();
  await watch.look(false);
  vi.setSystemTime(Date.now() + 10 * stuckAfterMs);
  await watch.look(false);
  expect(watch.isStuck()).toBe(false);
});

test.each([
  ["while nothing waits", createWatch({ waiting: 0 }), { isHeldUp: false, finishes: false }],
  ["while something else holds it up", createWatch(), { isHeldUp: true, finishes: false }],
  ["while events are finished, however many wait", createWatch(), { isHeldUp: false, finishes: true }],
])("a worker is not stuck %s", async (_, watch, { isHeldUp, finishes }) => {
  for (let looks = 0; looks <= 6; looks += 1) {
    if (finishes) await watch.follow(Promise.resolve());
    await watch.look(isHeldUp);
    vi.advanceTimersByTime(stuckAfterMs / 2);
    expect(watch.isStuck()).toBe(false);
  }
});

test.each([
  ["a failed attempt", new AttemptFailed("57014: too slow"), false],
  ["an event that waits for a later version", new DelayDelivery(60_000), false],
  ["an event that goes back undecided", new ReleaseDelivery("The worker is stopping."), true],
  ["a mistake in the worker", new TypeError("not a function"), true],
])("deliveries that end with an error are progress only if something was decided: %s", async (_, error, isStuck) => {
  const watch = createWatch();
  for (let looks = 0; looks <= 2; looks += 1) {
    await expect(watch.follow(Promise.reject(error))).rejects.toBe(error);
    await watch.look(false);
    vi.advanceTimersByTime(stuckAfterMs / 2);
  }
  expect(watch.isStuck()).toBe(isStuck);
});
