import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { boundConnections } from "./bound-connections.ts";

function bound(wanted: number, descriptorLimit?: number, shards = 1) {
  const lines: { level: string }[] = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { connections: boundConnections({ wanted, shards, logger, descriptorLimit }), lines };
}

test("the wanted number of connections is used if the limit on open files allows it", () => {
  expect(bound(10_000, 10_064)).toEqual({ connections: 10_000, lines: [] });
  expect(bound(10_000, Number.POSITIVE_INFINITY)).toEqual({ connections: 10_000, lines: [] });
});

test("otherwise there are fewer connections, and the log says so", () => {
  const { connections, lines } = bound(10_000, 1_024);
  expect(connections).toBe(960);
  expect(lines).toMatchObject([{ level: "warn", connections: 960, wanted: 10_000, descriptorLimit: 1_024 }]);
});

test("each further shard has a descriptor for its connection to Redis", () => {
  expect(bound(10_000, 1_024, 512).connections).toBe(1_024 - 64 - 511);
});

test("a limit that leaves no connections is refused, and the message says what to do", () => {
  expect(() => bound(10_000, 64)).toThrow(/limit of 64 open files.*ulimit -n/);
});

test("the limit of this process is detected", () => {
  expect(bound(1).connections).toBe(1);
  expect(bound(Number.MAX_SAFE_INTEGER).connections).toBeGreaterThan(100);
});
