import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { boundConnections } from "./bound-connections.ts";

function bound(wanted: number, descriptorLimit?: number) {
  const lines: { level: string }[] = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { connections: boundConnections(wanted, logger, descriptorLimit), lines };
}

test("there may be as many connections as are wanted, where the process may open as many files", () => {
  expect(bound(10_000, 10_064)).toEqual({ connections: 10_000, lines: [] });
  expect(bound(10_000, Number.POSITIVE_INFINITY)).toEqual({ connections: 10_000, lines: [] });
});

test("where it may not, there are fewer, and the log says so", () => {
  const { connections, lines } = bound(10_000, 1_024);
  expect(connections).toBe(960);
  expect(lines).toMatchObject([{ level: "warn", connections: 960, wanted: 10_000, descriptorLimit: 1_024 }]);
});

test("a limit that leaves none is refused, and the message says what to do", () => {
  expect(() => bound(10_000, 64)).toThrow(/may open 64 files.*ulimit -n/);
});

test("the limit of this process is found", () => {
  expect(bound(1).connections).toBe(1);
  expect(bound(Number.MAX_SAFE_INTEGER).connections).toBeGreaterThan(100);
});
