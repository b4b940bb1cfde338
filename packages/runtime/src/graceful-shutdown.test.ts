import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { installGracefulShutdown } from "./graceful-shutdown.ts";
import { createLogger } from "./logger.ts";

/** Stands in for the process that is shut down. */
let running: EventEmitter<Record<string, unknown[]>>;
let exitCodes: number[];
let log: Record<string, unknown>[];
/** The phases that have started, in order. */
let begun: string[];

beforeEach(() => {
  // setImmediate is real: a deadline waits for a turn of the event loop.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  running = new EventEmitter();
  exitCodes = [];
  log = [];
  begun = [];
});
afterEach(() => {
  vi.useRealTimers();
});

/** How long a phase takes, or what it throws. */
type Course = number | "hangs" | Error;

function install(options: { finish?: Course; close?: Course; timeoutMs?: number; delayMs?: number } = {}) {
  const { finish = 0, close = 0, timeoutMs = 10_000, delayMs = 0 } = options;
  return installGracefulShutdown({
    finishWork: () => take("finish", finish),
    closeConnections: () => take("close", close),
    timeoutMs,
    delayMs,
    logger: createLogger({ name: "test", level: "debug" }, { write: (line) => void log.push(JSON.parse(line)) }),
    process: Object.assign(running, { exit: (code: 0 | 1) => void exitCodes.push(code) }),
  });
}

async function take(name: string, course: Course): Promise<void> {
  begun.push(name);
  if (course instanceof Error) throw course;
  if (course === 0) return;
  await new Promise<void>((resolve) => {
    if (course !== "hangs") setTimeout(resolve, course);
  });
}

/** The log's lines without the fields that the logger adds to each. */
function logged() {
  return log.map(({ time: _time, pid: _pid, hostname: _hostname, name: _name, ...line }) => line);
}

describe.each(["SIGTERM", "SIGINT"] as const)("on %s", (signal) => {
  test("the phases run in order, and the exit code is 0 if all of them finish", async () => {
    const shutdown = install({ finish: 300, close: 200 });
    expect(shutdown.isShuttingDown()).toBe(false);
    expect(begun).toEqual([]);

    running.emit(signal, signal);
    expect(shutdown.isShuttingDown()).toBe(true);
    await vi.advanceTimersByTimeAsync(299);
    expect(begun).toEqual(["finish"]);
    await vi.advanceTimersByTimeAsync(200);
    expect([begun, exitCodes]).toEqual([["finish", "close"], []]);
    await vi.advanceTimersByTimeAsync(1);
    expect(exitCodes).toEqual([0]);
    expect(logged()).toEqual([
      { level: "info", msg: "stopping", signal, timeoutMs: 10_000 },
      { level: "debug", msg: "shutdown phase done", phase: "finish work in progress" },
      { level: "debug", msg: "shutdown phase done", phase: "close connections" },
      { level: "info", msg: "stopped", exitCode: 0, durationMs: 500 },
    ]);
  });

  test("the phases begin after the delay, and have the whole time limit from then on", async () => {
    const shutdown = install({ finish: "hangs", timeoutMs: 2_500, delayMs: 3_000 });
    running.emit(signal, signal);
    expect(shutdown.isShuttingDown()).toBe(true);
    await vi.advanceTimersByTimeAsync(2_999);
    expect(begun).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect([begun, exitCodes]).toEqual([["finish"], []]);
    await vi.advanceTimersByTimeAsync(1);
    expect(exitCodes).toEqual([1]);
    expect(logged()[0]).toEqual({ level: "info", msg: "stopping", signal, timeoutMs: 5_500 });
  });

  test("a second one ends the process immediately with exit code 1", async () => {
    install({ finish: "hangs" });
    running.emit(signal, signal);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(exitCodes).toEqual([]);
    running.emit("SIGINT", "SIGINT");
    expect(exitCodes).toEqual([1]);
    expect(logged().at(-1)).toEqual({
      level: "warn",
      msg: "stopping immediately: second signal",
      signal: "SIGINT",
    });
  });

  test("another one within the same second is ignored", async () => {
    install({ finish: 1_500 });
    running.emit(signal, signal);
    await vi.advanceTimersByTimeAsync(999);
    running.emit(signal, signal);
    expect(exitCodes).toEqual([]);
    await vi.advanceTimersByTimeAsync(501);
    expect([begun, exitCodes]).toEqual([["finish", "close"], [0]]);
  });
});

describe("a phase", () => {
  test("that hangs is abandoned at its limit; the next one has its own, and the exit code is 1", async () => {
    install({ finish: "hangs", close: 100, timeoutMs: 2_500 });
    running.emit("SIGTERM", "SIGTERM");
    await vi.advanceTimersByTimeAsync(1_999);
    expect(begun).toEqual(["finish"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(begun).toEqual(["finish", "close"]);
    await vi.advanceTimersByTimeAsync(100);
    expect(exitCodes).toEqual([1]);
    expect(logged()).toContainEqual({
      level: "error",
      msg: "shutdown phase timed out",
      phase: "finish work in progress",
      limitMs: 2_000,
    });
  });

  test("that fails is logged, and the next one still runs", async () => {
    install({ finish: new TypeError("broken") });
    running.emit("SIGTERM", "SIGTERM");
    await vi.advanceTimersByTimeAsync(0);
    expect([begun, exitCodes]).toEqual([["finish", "close"], [1]]);
    expect(logged()).toContainEqual(
      expect.objectContaining({ level: "error", msg: "shutdown phase failed", phase: "finish work in progress" }),
    );
    expect(log.find(({ phase }) => phase === "finish work in progress")?.["err"]).toMatchObject({ type: "TypeError" });
  });

  test("leaves no timer behind that would keep the process running", async () => {
    install({ close: new Error("broken") });
    running.emit("SIGTERM", "SIGTERM");
    await vi.advanceTimersByTimeAsync(0);
    expect(exitCodes).toEqual([1]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("both phases together respect the total limit, and the second one has its part of it", async () => {
  install({ finish: "hangs", close: "hangs" });
  running.emit("SIGTERM", "SIGTERM");
  await vi.advanceTimersByTimeAsync(8_000);
  expect(begun).toEqual(["finish", "close"]);
  await vi.advanceTimersByTimeAsync(1_999);
  expect(exitCodes).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(exitCodes).toEqual([1]);
  const limits = logged().filter(({ msg }) => msg === "shutdown phase timed out");
  expect(limits.map(({ limitMs }) => limitMs)).toEqual([8_000, 2_000]);
});

describe("an uncaught error", () => {
  test.each([
    ["uncaughtException", "stopping: uncaught exception"],
    ["unhandledRejection", "stopping: unhandled rejection"],
  ])("(%s) is logged and shuts the process down through all phases with exit code 1", async (event, msg) => {
    const shutdown = install({ delayMs: 3_000 });
    running.emit(event, new RangeError("broken"));
    expect(shutdown.isShuttingDown()).toBe(true);
    await vi.advanceTimersByTimeAsync(0);
    expect([begun, exitCodes]).toEqual([["finish", "close"], [1]]);
    expect(logged()[0]).toMatchObject({ level: "fatal", msg, err: { type: "RangeError" } });
  });

  test("during the delay ends it: the phases begin at once, and the exit code is 1", async () => {
    const shutdown = install({ finish: 100, delayMs: 3_000 });
    running.emit("SIGTERM", "SIGTERM");
    await vi.advanceTimersByTimeAsync(1_000);
    running.emit("uncaughtException", new RangeError("broken"));
    await vi.advanceTimersByTimeAsync(0);
    expect([begun, exitCodes]).toEqual([["finish"], []]);
    shutdown.fail("something else broke", new Error("broken"));
    await vi.advanceTimersByTimeAsync(100);
    expect([begun, exitCodes, vi.getTimerCount()]).toEqual([["finish", "close"], [1], 0]);
  });

  test("while the phases run is logged and does not change them", async () => {
    const shutdown = install({ finish: 100 });
    running.emit("SIGTERM", "SIGTERM");
    shutdown.fail("something broke", new Error("broken"));
    await vi.advanceTimersByTimeAsync(100);
    expect([begun, exitCodes]).toEqual([["finish", "close"], [0]]);
    expect(logged()[1]).toMatchObject({ level: "fatal", msg: "something broke" });
  });
});
