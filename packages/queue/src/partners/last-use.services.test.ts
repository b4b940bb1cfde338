import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { readLastUses, writeLastUses } from "./last-use.ts";

const redis = new Redis(redisUrl());
const prefix = uniquePrefix();

afterAll(async () => {
  await redis.del(`${prefix}:last-use`);
  redis.disconnect();
});

test("a use that an earlier release has written is known until there is a later one", async () => {
  const early = "2026-11-01T00:00:00.000Z";
  await redis.hset(`${prefix}:last-use`, { "acme/s1": early, "acme/s2": early });
  const usedAt = new Date("2026-11-02T00:00:00Z");
  await writeLastUses(redis, prefix, [{ partner: "acme", secretId: "s2", usedAt }]);
  const lastUses = await readLastUses({ redisServers: redisUrl(), prefix });
  expect(lastUses.of("acme", "s1")).toEqual(new Date(early));
  expect(lastUses.of("acme", "s2")).toEqual(usedAt);
  expect(lastUses.ofPartner("acme")).toEqual(usedAt);

  await redis.hset(`${prefix}:last-use`, { "acme/s2": "2026-11-03T00:00:00.000Z" });
  const older = await readLastUses({ redisServers: redisUrl(), prefix });
  expect(older.of("acme", "s2")).toEqual(new Date("2026-11-03T00:00:00Z"));
});
