import { expect, test } from "vitest";
import { createLogger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { ClockWatch } from "./watch-clocks.ts";

const dayMs = 86_400_000;
const agreeing = { clockAheadMs: 0, newestEventMs: null };

function createWatch() {
  const servers = { redis: async () => [agreeing, agreeing], postgresql: agreeing };
  const lines: string[] = [];
  const metrics = createMetrics("test");
  const watch = new ClockWatch({
    readRedis: () => servers.redis(),
    readDatabase: async () => servers.postgresql,
    metrics,
    logger: createLogger({ name: "test", level: "info" }, { write: (line: string) => void lines.push(line) }),
  });
  return { servers, lines, metrics, watch };
}

test("a clock that differs is reported until it agrees, logged once, and exported", async () => {
  const { servers, lines, metrics, watch } = createWatch();
  await watch.look();
  expect([watch.problems(), lines]).toEqual([[], []]);
  servers.postgresql = { clockAheadMs: 440 * dayMs, newestEventMs: null };
  await watch.look();
  expect(watch.problems()).toEqual([
    expect.stringMatching(/^PostgreSQL's clock is 440 days ahead of Redis' and this host's\. Correct it/),
  ]);
  expect(await watch.findProblem(servers.postgresql)).toBe(watch.problems()[0]);
  expect(lines).toEqual([expect.stringContaining("clocks differ")]);
  expect(await metrics.metrics()).toMatch(/^booking_events_database_clock_ahead_seconds\S* 38016000$/m);
  servers.postgresql = agreeing;
  await watch.look();
  expect(watch.problems()).toEqual([]);
  expect(lines).toHaveLength(2);
});

test("no clock is trusted while a Redis does not tell its time, and what was found stays", async () => {
  const { servers, watch } = createWatch();
  servers.redis = async () => [{ clockAheadMs: -dayMs, newestEventMs: null }];
  await watch.look();
  expect(watch.problems()).toHaveLength(1);
  servers.redis = async () => {
    throw new Error("down");
  };
  expect(await watch.findProblem(agreeing)).toMatch(/^Redis does not answer/);
  await expect(watch.look()).rejects.toThrow("down");
  expect(watch.problems()).toHaveLength(1);
});
