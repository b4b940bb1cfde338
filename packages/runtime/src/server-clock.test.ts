import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isHostClockWrong, ServerClock } from "./server-clock.ts";

const minute = 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a server's clock goes on, and shows when this host's is set", () => {
  const clock = new ServerClock(Date.now() + minute);
  expect(clock.hostAheadMs()).toBe(-minute);
  vi.advanceTimersByTime(10 * minute);
  expect(clock.hostAheadMs()).toBe(-minute);
  vi.setSystemTime(Date.now() + 3 * minute);
  expect(clock.hostAheadMs()).toBe(2 * minute);
});

test("this host's clock is known to be wrong if no server's is near it", () => {
  const serversAhead = (...minutes: number[]) => minutes.map((ahead) => new ServerClock(Date.now() + ahead * minute));
  expect(isHostClockWrong([])).toBe(false);
  expect(isHostClockWrong(serversAhead(4, -4))).toBe(false);
  expect(isHostClockWrong(serversAhead(0, 6))).toBe(false);
  expect(isHostClockWrong(serversAhead(6))).toBe(true);
  expect(isHostClockWrong(serversAhead(-6, 7))).toBe(true);
});
