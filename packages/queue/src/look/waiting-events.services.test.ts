import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { queueKeys } from "../events/queue-name.ts";
import { findWaiting } from "./waiting-events.ts";

const redis = new Redis(redisUrl());
afterAll(() => redis.disconnect());

const eventId = (number: number) => `01a1fafe-d690-7608-9309-${String(number).padStart(12, "0")}`;

/** A shard with an event of acme in each list, the oldest of them the one that was tried again. */
async function fill(): Promise<{ redis: Redis; prefix: string; keyOf: (name: string) => string }> {
  const prefix = uniquePrefix();
  const keyOf = queueKeys(prefix);
  const job = (number: number, partner = "acme") => redis.hset(keyOf(eventId(number)), "subject", `${partner} digest`);
  await Promise.all([job(2), job(3), job(1), job(4), job(5, "zenith")]);
  await redis.lpush(keyOf("wait"), eventId(5), eventId(2), "gone");
  await redis.lpush(keyOf("active"), eventId(3));
  await redis.zadd(keyOf("delayed"), 100, eventId(4), 200, eventId(1));
  return { redis, prefix, keyOf };
}

test("the events of each partner are counted in all lists of all shards, and the oldest is found", async () => {
  const { ofPartners, isComplete } = await findWaiting([await fill(), await fill()]);
  expect(Object.fromEntries(ofPartners)).toEqual({
    acme: { events: 8, oldestId: eventId(1) },
    zenith: { events: 2, oldestId: eventId(5) },
  });
  expect(isComplete).toBe(true);
});

test("of a long list, only the oldest are looked at, and that is said", async () => {
  const shard = await fill();
  await redis.lpush(shard.keyOf("wait"), ...Array.from({ length: 5_000 }, (_, number) => eventId(number + 10)));
  const { ofPartners, isComplete } = await findWaiting([shard]);
  expect(ofPartners.get("acme")).toEqual({ events: 4, oldestId: eventId(1) });
  expect(isComplete).toBe(false);
});

test("an empty queue has nothing, and what is no job of ours is left out", async () => {
  const prefix = uniquePrefix();
  expect((await findWaiting([{ redis, prefix }])).ofPartners.size).toBe(0);
  await redis.lpush(queueKeys(prefix)("wait"), "text", eventId(1), "1");
  await redis.set(queueKeys(prefix)("text"), "no hash");
  await redis.hset(queueKeys(prefix)(eventId(1)), "subject", "job: x");
  await redis.hset(queueKeys(prefix)("1"), "subject", "acme digest");
  expect((await findWaiting([{ redis, prefix }])).ofPartners.size).toBe(0);
});
