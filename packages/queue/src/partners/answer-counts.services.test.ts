import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { companionPrefix } from "../shards/shards.ts";
import { type AnswerCount, addAnswerCounts, readAnswerCounts } from "./answer-counts.ts";

const redis = new Redis(redisUrl());
afterAll(() => redis.disconnect());

test("answers add up by hour, status and code, are a partner's own, and expire", async () => {
  const prefix = uniquePrefix();
  const accepted: AnswerCount = { partner: "acme", hour: "2026-11-22T23", status: 200, code: "accepted", count: 2 };
  const refused = { ...accepted, status: 422, code: "invalid-data", count: 1 };
  const later = { ...accepted, hour: "2026-11-23T00" };
  await addAnswerCounts(redis, prefix, [accepted, refused, later, { ...accepted, partner: "zenith" }]);
  await addAnswerCounts(redis, prefix, [accepted]);
  const read = (...days: string[]) => readAnswerCounts(redis, prefix, { partner: "acme", days });
  expect(await read("2026-11-23", "2026-11-22")).toEqual([later, { ...accepted, count: 4 }, refused]);
  expect(await read("2026-11-21")).toEqual([]);
  const leftMs = await redis.pttl(`${companionPrefix(prefix, "records")}:answers:acme:2026-11-22`);
  expect(leftMs).toBeGreaterThan(14 * 86_400_000);
});
