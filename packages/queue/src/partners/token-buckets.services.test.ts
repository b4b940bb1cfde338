import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { companionPrefix } from "../shards/shards.ts";
import { createTokenBuckets, readBytesToday, type TokenBuckets } from "./token-buckets.ts";

const prefix = uniquePrefix();
/** Long enough for a busy machine, because these tests check Redis' answers and not their speed. */
const deadlineMs = 10_000;
/** The buckets of two processes. */
let buckets: [TokenBuckets, TokenBuckets];
let redis: Redis;

beforeAll(async () => {
  const create = () => createTokenBuckets({ redisServers: redisUrl(), prefix, onError: () => {}, deadlineMs });
  buckets = [create(), create()];
  redis = new Redis(redisUrl());
  // The buckets refuse requests until they are connected.
  for (const { take } of buckets) await waitFor(() => take("connection", { perSecond: 1, burst: 1 }, 1));
});

afterAll(async () => {
  for (const { close } of buckets) close();
  await redis.del(await redis.keys(`${companionPrefix(prefix, "limits")}:*`));
  redis.disconnect();
});

/** At this rate, no token is added during a test. */
const slow = { perSecond: 0.01, burst: 10 };

test("lookups have buckets of their own, and are not counted among ingests", async () => {
  const lookups = createTokenBuckets({
    redisServers: redisUrl(),
    prefix,
    group: "lookups",
    onError: () => {},
    deadlineMs,
  });
  await waitFor(() => lookups.take("connection", { perSecond: 1, burst: 1 }, 1));
  expect(await buckets[0].take("both", slow, 10)).toMatchObject({ granted: 10, left: 0 });
  expect(await lookups.take("both", slow, 4)).toMatchObject({ granted: 4, left: 6 });
  expect(lookups.processCount()).toBe(1);
  lookups.close();
});

/** Of 0.01 tokens a second, a test adds less than this. */
const left = (tokens: number) => ({ left: expect.closeTo(tokens, 0) });

test("processes share a bucket, to the last token", async () => {
  expect(await buckets[0].take("shared", slow, 4)).toMatchObject({ granted: 4, left: 6 });
  expect(await buckets[1].take("shared", slow, 4)).toMatchObject({ granted: 4, ...left(2) });
  expect(await buckets[0].take("shared", slow, 4)).toMatchObject({ granted: 2, ...left(0) });
  expect(await buckets[1].take("shared", slow, 1)).toMatchObject({ granted: 0, ...left(0) });
  expect(await buckets[1].take("another", slow, 1)).toMatchObject({ granted: 1, left: 9 });
});

test("a debt leaves the bucket below zero for all processes, until time has paid it", async () => {
  expect(await buckets[0].take("in-debt", slow, 1, 8)).toMatchObject({ granted: 1, ...left(1) });
  expect(await buckets[0].take("in-debt", slow, 1, 30)).toMatchObject({ granted: 0, ...left(-29) });
  expect(await buckets[1].take("in-debt", slow, 1)).toMatchObject({ granted: 0, ...left(-29) });
  const faster = { perSecond: 100, burst: 10 };
  const startedAt = performance.now();
  await waitFor(async () => expect(await buckets[1].take("in-debt", faster, 1)).toMatchObject({ granted: 1 }));
  expect(performance.now() - startedAt).toBeGreaterThan(250);
});

test.each([
  { perSecond: 1_000, burst: 50 },
  { perSecond: 3_000, burst: 1 },
  { perSecond: 333.3, burst: 7 },
])("over any time, no more than the burst and the rate's tokens are granted: %o", async (size) => {
  const id = `bound-${size.perSecond}`;
  let granted = 0;
  // Uses the larger time, so setting a clock during the test causes no false alarm: Redis' clock if it was set forward,
  // and otherwise our monotonic clock, which is never set.
  const [oursAtMs, startedAtMs] = [performance.now(), await redisTimeMs()];
  while (granted < size.burst + 100) {
    const taken = await Promise.all([...buckets, ...buckets].map(({ take }) => take(id, size, 3)));
    granted += taken.reduce((sum, each) => sum + each.granted, 0);
    const elapsedMs = Math.max((await redisTimeMs()) - startedAtMs, performance.now() - oursAtMs);
    expect(granted).toBeLessThanOrEqual(size.burst + (elapsedMs * size.perSecond) / 1_000 + 0.01);
  }
});

test("a bucket's key exists until the bucket is full, to the microsecond", async ({ skip }) => {
  const version = Number(/^redis_version:(\d+)/m.exec(await redis.info("server"))?.[1]);
  skip(version < 7, "An older Redis does not report when a key expires.");
  const size = { perSecond: 333.3, burst: 7 };
  for (let look = 0; look < 200; look += 1) {
    const [, stored, expiresAtMs] = await Promise.all([
      buckets[0].take("expiring", size, 1),
      redis.get(`${companionPrefix(prefix, "limits")}:rate-limit:expiring`),
      redis.pexpiretime(`${companionPrefix(prefix, "limits")}:rate-limit:expiring`),
    ]);
    // A key that expires in between would be missing for one of the two.
    if (stored === null || expiresAtMs <= 0) continue;
    const [tokens = 0, at = 0] = stored.split(" ").map(Number);
    const fullAt = at + ((size.burst - tokens) / size.perSecond) * 1_000_000;
    expect(expiresAtMs * 1_000).toBeGreaterThanOrEqual(Math.floor(fullAt));
  }
});

test("a bucket never holds more than its burst, and leaves nothing in Redis when it is full", async () => {
  const size = { perSecond: 100, burst: 3 };
  expect(await buckets[0].take("full", size, 3)).toMatchObject({ granted: 3 });
  await waitFor(async () => expect(await redis.exists(`${companionPrefix(prefix, "limits")}:rate-limit:full`)).toBe(0));
  expect(await buckets[0].take("full", size, 5)).toMatchObject({ granted: 3, left: 0 });
});

test.each([0.01, 7, 999.9, 1_000_000])("a burst is complete at %d tokens a second", async (perSecond) => {
  for (const burst of [1, 3, 10, 49, 1_000]) {
    expect(await buckets[0].take(`whole-${perSecond}-${burst}`, { perSecond, burst }, burst)).toMatchObject({
      granted: burst,
    });
  }
});

test("a raised limit applies immediately, whatever was used under the old one", async () => {
  expect(await buckets[0].take("raised", slow, 10)).toMatchObject({ granted: 10, left: 0 });
  const raised = { perSecond: 1_000, burst: 10 };
  await waitFor(async () => expect(await buckets[1].take("raised", raised, 1)).toMatchObject({ granted: 1 }));
});

test("setting the clock back by a day changes nothing but the time, whatever is in the bucket", async () => {
  const tomorrow = ((await redisTimeMs()) + 86_400_000) * 1_000;
  await redis.set(`${companionPrefix(prefix, "limits")}:rate-limit:set-back`, `-0.5 ${tomorrow}`);
  const size = { perSecond: 100, burst: 5 };
  expect(await buckets[0].take("set-back", size, 1)).toMatchObject({ granted: 0, left: -0.5 });
  await waitFor(async () => expect(await buckets[0].take("set-back", size, 1)).toMatchObject({ granted: 1 }));
});

test("processes count bytes together, of each partner, until the day of Redis' clock ends", async () => {
  const key = `${companionPrefix(prefix, "limits")}:bytes-today:counted`;
  expect(await buckets[0].take("counted", slow, 1)).toMatchObject({ bytesToday: 0 });
  expect(await buckets[0].take("counted", slow, 0, 0, 700)).toMatchObject({ granted: 0, bytesToday: 700 });
  expect(await buckets[1].take("counted", slow, 1, 0, 50)).toMatchObject({ granted: 1, bytesToday: 750 });
  expect(await buckets[1].take("others", slow, 1)).toMatchObject({ bytesToday: 0 });
  const { dayEndsInS } = await buckets[0].take("counted", slow, 1);
  expect(dayEndsInS).toBeGreaterThan(0);
  expect((Math.floor((await redisTimeMs()) / 1_000) + dayEndsInS) % 86_400).toBeLessThan(10);
  expect(Math.abs((await redis.ttl(key)) - dayEndsInS)).toBeLessThan(10);
  expect(await readBytesToday({ redisServers: redisUrl(), prefix }, ["others", "counted"])).toEqual(
    new Map([
      ["others", 0],
      ["counted", 750],
    ]),
  );
});

test("what a partner has used of its limits is read without taking any of it", async () => {
  const size = { perSecond: 0.001, burst: 10 };
  expect(await buckets[0].look("looked", size)).toMatchObject({ available: 10, bytesToday: 0 });
  await buckets[1].take("looked", size, 4, 0, 750);
  for (const bucket of buckets) {
    const { available, bytesToday, dayEndsAt } = await bucket.look("looked", size);
    expect([available, bytesToday]).toEqual([6, 750]);
    expect(dayEndsAt.toISOString()).toMatch(/T00:00:00\.000Z$/);
    expect(dayEndsAt.getTime()).toBeGreaterThan(await redisTimeMs());
  }
  await buckets[0].take("looked", size, 1, 20);
  expect((await buckets[0].look("looked", size)).available).toBe(0);
});

test("a clock that was wrong does not keep the bytes of a day longer than until they are counted again", async () => {
  const key = `${companionPrefix(prefix, "limits")}:bytes-today:wrong-clock`;
  await redis.set(key, 100, "EX", 440 * 86_400);
  expect(await buckets[0].take("wrong-clock", slow, 0, 0, 1)).toMatchObject({ bytesToday: 101 });
  expect(await redis.ttl(key)).toBeLessThanOrEqual(86_400);
});

test("each process knows how many share the buckets, and ended ones are soon not counted", async () => {
  const counts = () => buckets.map(({ processCount }) => processCount());
  await waitFor(() => expect(counts()).toEqual([2, 2]));
  const third = createTokenBuckets({ redisServers: redisUrl(), prefix, onError: () => {}, deadlineMs });
  await waitFor(() => expect([...counts(), third.processCount()]).toEqual([3, 3, 3]));
  third.close();

  const nowS = Math.floor((await redisTimeMs()) / 1_000);
  const members = await redis.zrange(`${companionPrefix(prefix, "limits")}:ingests`, "0", "-1");
  // Entries of clocks that were set: all are a minute old or an hour ahead. Living processes are back immediately.
  for (const atS of [nowS - 60, nowS + 3_600]) {
    for (const member of members) await redis.zadd(`${companionPrefix(prefix, "limits")}:ingests`, atS, member);
    await waitFor(async () => {
      const membersAndTimes = await redis.zrange(
        `${companionPrefix(prefix, "limits")}:ingests`,
        "0",
        "-1",
        "WITHSCORES",
      );
      expect(membersAndTimes).toHaveLength(2 * 2);
      expect(membersAndTimes.includes(`${atS}`)).toBe(false);
    });
    await waitFor(() => expect(counts()).toEqual([2, 2]));
  }
});

async function redisTimeMs(): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
}
