import { createLogger } from "@booking-events/runtime";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRefusalCounter, type RefusalCounter } from "./count-refusals.ts";

type Line = Record<string, unknown>;
type Refused = Parameters<RefusalCounter["countRepeat"]>[0];

let lines: Line[];
let counter: RefusalCounter;

beforeEach(() => {
  vi.useFakeTimers();
  counter = create();
});
afterEach(() => {
  vi.useRealTimers();
});

function create(limits?: Parameters<typeof createRefusalCounter>[1]): RefusalCounter {
  lines = [];
  const write = (line: string) => {
    const { level, msg, repeated, ...rest } = JSON.parse(line);
    const { name, pid, time, ...fields } = rest;
    lines.push({ level, msg, repeated, ...fields });
  };
  return createRefusalCounter(createLogger({ name: "test", level: "info" }, { write }), limits);
}

const guess = (ip: string, more: Partial<Refused> = {}): Refused => ({
  ip,
  status: 403,
  outcome: "unknown-secret",
  ...more,
});
const limited = (partner: string): Refused => ({ partner, status: 429, outcome: "over-rate-limit" });

/** @returns how many of them get their own log line */
function refuse(count: number, request: Refused): number {
  return Array.from({ length: count }, () => counter.countRepeat(request)).filter((isRepeat) => !isRepeat).length;
}

test("the first refusal has its own line, and the following ones share one line a second with their number", () => {
  expect(refuse(1, guess("192.0.2.1"))).toBe(1);
  expect(refuse(10, guess("192.0.2.1"))).toBe(0);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(1_000);
  const line = { level: "info", msg: "request repeated", ip: "192.0.2.1", status: 403, outcome: "unknown-secret" };
  expect(lines).toEqual([{ ...line, repeated: 10 }]);
  expect(refuse(7, guess("192.0.2.1"))).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(lines).toEqual([
    { ...line, repeated: 10 },
    { ...line, repeated: 7 },
  ]);
});

test("a series that has ended is forgotten, and no timer remains", () => {
  refuse(2, guess("192.0.2.1"));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(2_000);
  expect(vi.getTimerCount()).toBe(0);
  expect(lines).toHaveLength(1);
  expect(refuse(1, guess("192.0.2.1"))).toBe(1);
});

test.each([
  ["IPv6 addresses of one /64", guess("2001:db8:1:2::1"), guess("2001:db8:1:2::2"), 1],
  ["two addresses", guess("192.0.2.1"), guess("192.0.2.2"), 2],
  ["two causes from one address", guess("192.0.2.1"), guess("192.0.2.1", { outcome: "no-such-path" }), 2],
  ["two statuses of one cause", guess("192.0.2.1"), guess("192.0.2.1", { status: 429 }), 2],
  ["two partners", limited("acme"), limited("zenith"), 2],
  ["a partner at two addresses", { ...limited("acme"), ip: "192.0.2.1" }, { ...limited("acme"), ip: "192.0.2.2" }, 1],
  [
    "two errors",
    { status: 500, outcome: "e", err: new TypeError() },
    { status: 500, outcome: "e", err: new Error() },
    2,
  ],
])("%s form one series for each sender and cause", (_what, first, second, series) => {
  expect(refuse(1, first) + refuse(1, second)).toBe(series);
});

test("repeated internal errors are logged at level error", () => {
  refuse(3, { partner: "acme", status: 500, outcome: "internal-error", err: new Error("secret") });
  counter.flush();
  const line = { level: "error", msg: "request repeated", partner: "acme", status: 500, outcome: "internal-error" };
  expect(lines).toEqual([{ ...line, repeated: 2 }]);
});

test("counts that have not been logged are logged once at exit", () => {
  refuse(5, guess("192.0.2.1"));
  counter.flush();
  counter.flush();
  expect(lines).toMatchObject([{ repeated: 4 }]);
});

test("a flood from many addresses writes a limited number of lines and loses no count", () => {
  const limits = { intervalMs: 1_000, maxStrangerSeries: 10, maxPartnerSeries: 10 };
  counter = create(limits);
  let ownLines = 0;
  for (let second = 0; second < 3; second += 1) {
    for (let i = 0; i < 5_000; i += 1) {
      const outcome = i % 5 === 0 ? "no-such-path" : "unknown-secret";
      ownLines += refuse(2, guess(`10.${second}.${i >> 8}.${i & 255}`, { outcome }));
    }
    vi.advanceTimersByTime(1_000);
  }
  expect(ownLines + lines.length).toBeLessThanOrEqual(3 * (2 * limits.maxStrangerSeries + 1));
  const counted = lines.reduce((sum, { repeated }) => sum + Number(repeated), 0);
  expect(ownLines + counted).toBe(30_000);
  expect(lines).toContainEqual({
    level: "info",
    msg: "requests of other addresses refused",
    repeated: expect.any(Number),
    outcomes: { "unknown-secret": expect.any(Number), "no-such-path": expect.any(Number) },
  });
});

test("strangers cannot use up partners' log lines", () => {
  counter = create({ intervalMs: 1_000, maxStrangerSeries: 1, maxPartnerSeries: 1 });
  expect(refuse(1, guess("192.0.2.1"))).toBe(1);
  expect(refuse(1, guess("192.0.2.2"))).toBe(0);
  expect(refuse(1, limited("acme"))).toBe(1);
  expect(refuse(3, limited("zenith"))).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(lines).toContainEqual({
    level: "info",
    msg: "requests of other partners refused",
    repeated: 3,
    outcomes: { "over-rate-limit": 3 },
  });
});
