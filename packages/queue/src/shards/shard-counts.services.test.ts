import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { forgetShardCount, readShardCounts, recordShardCount } from "./shard-counts.ts";

const redis = new Redis(redisUrl());
const prefix = uniquePrefix();

afterAll(async () => {
  await redis.del(`${prefix}:shard-counts`);
  redis.disconnect();
});

test("a number of shards stays recorded until nobody uses it and it is forgotten", async () => {
  expect(await readShardCounts(redis, prefix)).toEqual([]);
  await recordShardCount(redis, prefix, 1);
  expect(await readShardCounts(redis, prefix)).toEqual([]);
  await recordShardCount(redis, prefix, 8);
  await recordShardCount(redis, prefix, 2);
  expect((await readShardCounts(redis, prefix)).toSorted()).toEqual([2, 8]);

  expect(await forgetShardCount(redis, prefix, 8)).toBe(false);
  const [seconds] = (await redis.time()) as unknown as [string, string];
  await redis.zadd(`${prefix}:shard-counts`, Number(seconds) - 61, "8");
  expect((await readShardCounts(redis, prefix)).toSorted()).toEqual([2, 8]);
  expect(await forgetShardCount(redis, prefix, 8)).toBe(true);
  expect(await readShardCounts(redis, prefix)).toEqual([2]);
});
