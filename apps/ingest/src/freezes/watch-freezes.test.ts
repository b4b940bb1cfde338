import { Socket } from "node:net";
import { enqueueDeadlineMs } from "@booking-events/queue";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { turnLimits } from "../load/take-turns.ts";
import { FreezeWatch, freezeLimits } from "./watch-freezes.ts";

const { tickIntervalMs, longestUnnoticedMs, longestAcceptMs, refusalMs } = freezeLimits;
const turnMs = 10;
/** See token-buckets.ts. */
const waitForTokensMs = 100;

let monotonicMs: number;
let wallMs: number;
let immediates: (() => void)[];
let watch: FreezeWatch;
let open: Socket;
let metrics: ReturnType<typeof createMetrics>;
const warn = vi.fn();

beforeEach(() => {
  [monotonicMs, wallMs] = [5_000, 1_800_000_000_000];
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  vi.spyOn(performance, "now").mockImplementation(() => monotonicMs);
  vi.spyOn(Date, "now").mockImplementation(() => wallMs);
  immediates = [];
  vi.stubGlobal("setImmediate", (run: () => void) => immediates.push(run));
  metrics = createMetrics("test");
  const logger = createLogger({ name: "test", level: "silent" });
  vi.spyOn(logger, "warn").mockImplementation(warn);
  watch = new FreezeWatch({ logger, metrics });
  watch.begin();
  open = connectNow();
});

afterEach(() => {
  watch.stop();
  warn.mockReset();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function connectNow(): Socket {
  const socket = new Socket();
  watch.trackConnection(socket);
  return socket;
}

/** Runs turns of the event loop that each accept a connection, and returns which of these may have waited too long. */
function runAccepting(turns: number, eachMs: number): boolean[] {
  return Array.from({ length: turns }, () => {
    freeze(eachMs);
    const socket = connectNow();
    endTurn(eachMs);
    return watch.wasFrozen(socket);
  });
}

/** Immediates run after the kernel has been polled; those that they schedule run in the next turn. */
function endTurn(tookMs: number): void {
  for (const immediate of immediates.splice(0)) immediate();
  vi.advanceTimersByTime(tookMs);
}

/** Time passes without any code of this process running. */
function freeze(ms: number): void {
  monotonicMs += ms;
  wallMs += ms;
}

function run(ms: number): void {
  for (let passedMs = 0; passedMs < ms; passedMs += tickIntervalMs) {
    freeze(tickIntervalMs);
    endTurn(tickIntervalMs);
  }
}

test("a running process is not frozen", () => {
  run(10_000);
  freeze(longestUnnoticedMs - tickIntervalMs);
  expect(watch.wasFrozen(open)).toBe(false);
  expect(warn).not.toHaveBeenCalled();
});

test("a slow start is no freeze, because nobody could send anything", () => {
  watch.stop();
  watch = new FreezeWatch({ logger: createLogger({ name: "test", level: "silent" }), metrics: createMetrics("test") });
  freeze(10_000);
  watch.recordLostTime(10_000);
  watch.begin();
  expect(watch.wasFrozen(connectNow())).toBe(false);
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen(open)).toBe(true);
});

test("two slow turns are a freeze, because what is read may have arrived at the start of the first", () => {
  run(10_000);
  for (const slowMs of [longestUnnoticedMs / 2, longestUnnoticedMs / 2 + 1]) {
    expect(watch.wasFrozen(open)).toBe(false);
    freeze(slowMs);
    vi.advanceTimersByTime(tickIntervalMs);
  }
  expect(watch.wasFrozen(open)).toBe(true);
});

test("an event takes effect within the promised 5 s, in the slowest turns that go unnoticed", () => {
  const untilRead = longestAcceptMs + longestUnnoticedMs;
  const untilDecoded = waitForTokensMs + longestUnnoticedMs + turnLimits.longestWaitMs;
  expect(untilRead + untilDecoded + enqueueDeadlineMs).toBeLessThan(5_000);
});

test("the first request after a freeze detects it, before any timer has run", () => {
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen(open)).toBe(true);
});

test("for a second after a freeze everything is refused, because other requests waited too", () => {
  freeze(3_000);
  run(refusalMs - tickIntervalMs);
  expect(watch.wasFrozen(open)).toBe(true);
  run(tickIntervalMs * 2);
  expect(watch.wasFrozen(open)).toBe(false);
});

test("the second starts at the last freeze, and consecutive freezes are logged and counted as one", async () => {
  freeze(3_000);
  expect(watch.wasFrozen(open)).toBe(true);
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen(open)).toBe(true);
  run(refusalMs - 2 * tickIntervalMs);
  expect(watch.wasFrozen(open)).toBe(true);
  run(tickIntervalMs * 3);
  expect(watch.wasFrozen(open)).toBe(false);
  expect(warn.mock.calls).toEqual([[{ frozenMs: 3_000 }, expect.any(String)]]);
  expect((await metrics.getSingleMetric("ingest_freezes_total")?.get())?.values).toMatchObject([{ value: 1 }]);
});

test("a suspended machine, whose monotonic clock stopped, is detected by the wall clock", () => {
  wallMs += longestUnnoticedMs + 1;
  expect(watch.wasFrozen(open)).toBe(true);
  run(refusalMs);
  expect(watch.wasFrozen(open)).toBe(false);
});

test("on a suspended machine, connections that waited are refused for longer than those that were open", () => {
  run(10 * tickIntervalMs);
  wallMs += 3_000;
  const socket = connectNow();
  run(refusalMs + tickIntervalMs);
  expect(watch.wasFrozen(open)).toBe(false);
  expect(watch.wasFrozen(socket)).toBe(true);
});

test("a clock that is set back is not a freeze, and hides none", () => {
  wallMs -= 3_600_000;
  expect(watch.wasFrozen(open)).toBe(false);
  run(tickIntervalMs);
  freeze(longestUnnoticedMs + 1);
  expect(watch.wasFrozen(open)).toBe(true);
});

test("connections that waited are accepted one by one, and requests on each are refused", () => {
  run(10 * tickIntervalMs);
  freeze(3_000);
  expect(new Set(runAccepting(500, turnMs))).toEqual(new Set([true]));
  // Connections that were open have been read long before.
  expect(watch.wasFrozen(open)).toBe(false);
  // A turn follows in which no connection is accepted.
  run(2 * tickIntervalMs);
  expect(runAccepting(10, turnMs)).toEqual(Array(10).fill(false));
});

test("a stream of connections is refused as soon as one may have waited too long, though nothing was frozen", async () => {
  run(10 * tickIntervalMs);
  const turns = (2 * longestAcceptMs) / turnMs;
  const refused = runAccepting(turns, turnMs);
  // The first may have waited since the last tick but one.
  const first = refused.indexOf(true);
  expect(first).toBeLessThanOrEqual(longestAcceptMs / turnMs);
  expect(first).toBeGreaterThan((longestAcceptMs - 2 * tickIntervalMs) / turnMs);
  expect(refused.lastIndexOf(false)).toBe(first - 1);
  expect(warn).not.toHaveBeenCalled();
  const late = metrics.getSingleMetric("ingest_late_connections_total");
  expect((await late?.get())?.values).toMatchObject([{ value: turns - first }]);
});

test("a connection that waited is refused even if slow turns come before its data", () => {
  run(10 * tickIntervalMs);
  runAccepting((2 * longestAcceptMs) / turnMs, turnMs);
  const socket = connectNow();
  for (let turn = 0; turn < 4; turn += 1) {
    freeze(longestUnnoticedMs / 2);
    vi.advanceTimersByTime(tickIntervalMs);
  }
  expect(watch.wasFrozen(open)).toBe(false);
  expect(watch.wasFrozen(socket)).toBe(true);
});

test("a connection that waited is refused for some seconds, not forever", () => {
  freeze(3_000);
  const socket = connectNow();
  run(refusalMs + 2 * longestUnnoticedMs - tickIntervalMs);
  expect(watch.wasFrozen(socket)).toBe(true);
  run(tickIntervalMs * 2);
  expect(watch.wasFrozen(socket)).toBe(false);
});

test("time lost according to another clock is a freeze if it is long enough", () => {
  watch.recordLostTime(longestUnnoticedMs);
  expect(watch.wasFrozen(open)).toBe(false);
  watch.recordLostTime(longestUnnoticedMs + 1);
  expect(watch.wasFrozen(open)).toBe(true);
  run(refusalMs);
  expect(watch.wasFrozen(open)).toBe(false);
});
