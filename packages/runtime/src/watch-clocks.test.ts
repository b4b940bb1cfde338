import { expect, test } from "vitest";
import type { ServerTime } from "./compare-clocks.ts";
import { createLogger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { ClockWatch } from "./watch-clocks.ts";

const dayMs = 86_400_000;
const agreeing = { clockAheadMs: 0, newestEventMs: null };
const behind = (ms: number): ServerTime => ({ clockAheadMs: -ms, newestEventMs: null });

function createWatch() {
  const servers: { redis: (ServerTime | "down")[]; postgresql: ServerTime } = {
    redis: [agreeing, agreeing],
    postgresql: agreeing,
  };
  const lines: string[] = [];
  const metrics = createMetrics("test");
  const watch = new ClockWatch({
    readRedis: () =>
      servers.redis.map(async (time) => {
        if (time === "down") throw new Error("down");
        return time;
      }),
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

test("a wrong clock is found, and that it was corrected, although a Redis does not answer", async () => {
  const { servers, watch } = createWatch();
  const [redis, postgresql] = [behind(dayMs), behind(dayMs)];
  Object.assign(servers, { redis: ["down", redis], postgresql });
  await watch.look();
  expect(watch.isHostWrong()).toBe(true);
  Object.assign(servers, { redis: ["down", agreeing], postgresql: agreeing });
  await watch.look();
  expect(watch.isHostWrong()).toBe(false);
});

test("nothing may be removed while a Redis does not tell its time", async () => {
  const { servers, watch } = createWatch();
  servers.redis = [agreeing, "down"];
  expect(await watch.findProblem(agreeing)).toMatch(/^Redis does not answer/);
});

test("what was found stays while no Redis tells its time", async () => {
  const { servers, watch } = createWatch();
  servers.redis = [behind(dayMs)];
  await watch.look();
  expect(watch.problems()).toHaveLength(1);
  servers.redis = ["down", "down"];
  expect(await watch.findProblem(agreeing)).toMatch(/^Redis does not answer/);
  await expect(watch.look()).rejects.toThrow("No Redis answers.");
  expect(watch.problems()).toHaveLength(1);
});
