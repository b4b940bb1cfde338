import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { queueName } from "@booking-events/queue";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const redis = new Redis(redisUrl());
const { url } = useTestDatabase({ maxConnections: 1 });
const environment = { DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix(), QUEUE_SHARDS: "2" };
const ofShard = ["", "-1"].map((suffix) => environment.QUEUE_PREFIX.replace("}", `${suffix}}`));

/** Events that failed, in the two shards of the queue. */
beforeAll(async () => {
  for (const [shard, id, code] of [
    [0, "one", "23514"],
    [1, "two", "23514"],
    [1, "three", "TypeError"],
  ] as const) {
    const key = (name: string) => `${ofShard[shard]}:${queueName}:${name}`;
    await redis.hset(key(id), { timestamp: Date.now(), failedReason: `${code}: It failed.` });
    await redis.zadd(key("delayed"), (Date.now() + 3_600_000) * 0x1000, id);
    await redis.zadd(key("retrying"), Date.now(), id);
  }
});

afterAll(() => redis.disconnect());

async function retry(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runOps(["queue", "retry-now", ...args], { environment });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

test("retry-now brings the events of all shards forward, and says how many", async () => {
  expect(await retry("--code", "23514", "--json")).toBe('{\n  "retried": 2,\n  "delayed": 1\n}\n');
  expect(await retry("--code", "23514")).toBe(
    "No event that failed with the code 23514 waits for its next attempt. Still delayed: 1.\n",
  );
  expect(await retry()).toBe("1 event that failed can be taken by workers now.\n");
  expect(await retry()).toBe("No event that failed waits for its next attempt.\n");
  expect(await redis.llen(`${ofShard[1]}:${queueName}:wait`)).toBe(2);
});

test("retry-now refuses what is no code, and says which Redis does not answer", async () => {
  expect(await runOps(["queue", "retry-now", "--code", "23514: it failed"], { environment })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("A code is one word"),
  });
  const nowhere = { ...environment, REDIS_URL: "redis://127.0.0.1:1" };
  expect(await runOps(["queue", "retry-now"], { environment: nowhere })).toMatchObject({
    exitCode: 1,
    stdout: "",
    stderr: expect.stringMatching(/^Not retried: shards 0-1 of 2\. Redis at 127\.0\.0\.1:1 does not answer/),
  });
});
