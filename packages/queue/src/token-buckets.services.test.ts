import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTokenBuckets, type TokenBuckets } from "./token-buckets.ts";

const prefix = uniquePrefix();
/** These tests are about what Redis answers, not how soon it does on a busy machine. */
const deadlineMs = 10_000;
/** Of two processes. */
let buckets: [TokenBuckets, TokenBuckets];
let redis: Redis;

beforeAll(async () => {
  const create = () => createTokenBuckets({ redisUrl: redisUrl(), prefix, onError: () => {}, deadlineMs });
  buckets = [create(), create()];
  redis = new Redis(redisUrl());
  // A bucket refuses at once what comes before its connection.
  for (const { take } of buckets) await waitFor(() => take("connection", { perSecond: 1, burst: 1 }, 1));
});

afterAll(async () => {
  for (const { close } of buckets) close();
  await redis.del(await redis.keys(`${prefix}:*`));
  redis.disconnect();
});

/** In the time of a test, no token comes. */
const slow = { perSecond: 0.01, burst: 10 };

test("processes share a bucket, to the last token", async () => {
  expect(await buckets[0].take("shared", slow, 4)).toEqual({ granted: 4, left: 6, waitMs: expect.any(Number) });
  expect(await buckets[1].take("shared", slow, 4)).toMatchObject({ granted: 4, left: 2 });
  expect(await buckets[0].take("shared", slow, 4)).toMatchObject({ granted: 2, left: 0 });
  const { waitMs, ...nothing } = await buckets[1].take("shared", slow, 1);
  expect(nothing).toEqual({ granted: 0, left: 0 });
  expect(waitMs).toBeGreaterThan(50_000);
  expect(waitMs).toBeLessThanOrEqual(100_000);
  expect(await buckets[1].take("another", slow, 1)).toMatchObject({ granted: 1, left: 9 });
});

test.each([
  { perSecond: 1_000, burst: 50 },
  { perSecond: 3_000, burst: 1 },
  { perSecond: 333.3, burst: 7 },
])("over any time, no more than the burst and the rate's tokens come out: %o", async (size) => {
  const id = `bound-${size.perSecond}`;
  let granted = 0;
  // A clock that is set while the test runs gives no wrong alarm: set forward, Redis' own tells of more time; set back,
  // ours does, which is never set.
  const [oursAtMs, startedAtMs] = [performance.now(), await redisTimeMs()];
  while (granted < size.burst + 100) {
    const taken = await Promise.all([...buckets, ...buckets].map(({ take }) => take(id, size, 3)));
    granted += taken.reduce((sum, each) => sum + each.granted, 0);
    const elapsedMs = Math.max((await redisTimeMs()) - startedAtMs, performance.now() - oursAtMs);
    expect(granted).toBeLessThanOrEqual(size.burst + (elapsedMs * size.perSecond) / 1_000 + 0.01);
  }
});

test("a bucket's key is there until the bucket is full, to the microsecond", async ({ skip }) => {
  const version = Number(/^redis_version:(\d+)/m.exec(await redis.info("server"))?.[1]);
  skip(version < 7, "An older Redis does not tell when a key expires.");
  const size = { perSecond: 333.3, burst: 7 };
  for (let look = 0; look < 200; look += 1) {
    const [, fullAt, expiresAtMs] = await Promise.all([
      buckets[0].take("expiring", size, 1),
      redis.get(`${prefix}:rate-limit:expiring`),
      redis.pexpiretime(`${prefix}:rate-limit:expiring`),
    ]);
    // What expires in between is not there for both.
    if (fullAt !== null && expiresAtMs > 0) expect(expiresAtMs * 1_000).toBeGreaterThanOrEqual(Number(fullAt));
  }
});

test("a bucket never holds more than its burst, and leaves nothing in Redis when it is full", async () => {
  const size = { perSecond: 100, burst: 3 };
  expect(await buckets[0].take("full", size, 3)).toMatchObject({ granted: 3 });
  await waitFor(async () => expect(await redis.exists(`${prefix}:rate-limit:full`)).toBe(0));
  expect(await buckets[0].take("full", size, 5)).toMatchObject({ granted: 3, left: 0 });
});

test.each([0.01, 7, 999.9, 1_000_000])("a burst is whole at %d tokens a second", async (perSecond) => {
  for (const burst of [1, 3, 10, 49, 1_000]) {
    expect(await buckets[0].take(`whole-${perSecond}-${burst}`, { perSecond, burst }, burst)).toMatchObject({
      granted: burst,
    });
  }
});

test("a raised limit counts at once: what was used up under the old one is not held against it", async () => {
  expect(await buckets[0].take("raised", slow, 10)).toMatchObject({ granted: 10, left: 0 });
  const raised = { perSecond: 1_000, burst: 10 };
  await waitFor(async () => expect(await buckets[1].take("raised", raised, 1)).toMatchObject({ granted: 1 }));
});

test("a clock that was set back by a day costs one empty bucket, not a day", async () => {
  const tomorrow = ((await redisTimeMs()) + 86_400_000) * 1_000;
  await redis.set(`${prefix}:rate-limit:set-back`, tomorrow);
  const size = { perSecond: 100, burst: 5 };
  expect(await buckets[0].take("set-back", size, 1)).toMatchObject({ granted: 0 });
  await waitFor(async () => expect(await buckets[0].take("set-back", size, 1)).toMatchObject({ granted: 1 }));
});

test("each process knows how many share the buckets; one that is gone for a while is not counted", async () => {
  const counts = () => buckets.map(({ processCount }) => processCount());
  await waitFor(() => expect(counts()).toEqual([2, 2]));
  const third = createTokenBuckets({ redisUrl: redisUrl(), prefix, onError: () => {}, deadlineMs });
  await waitFor(() => expect([...counts(), third.processCount()]).toEqual([3, 3, 3]));
  third.close();

  const nowS = Math.floor((await redisTimeMs()) / 1_000);
  const members = await redis.zrange(`${prefix}:ingests`, "0", "-1");
  // Of clocks that were set: all have been silent for a minute, or are an hour ahead. Who is alive is back at once.
  for (const atS of [nowS - 60, nowS + 3_600]) {
    for (const member of members) await redis.zadd(`${prefix}:ingests`, atS, member);
    await waitFor(async () => {
      const membersAndTimes = await redis.zrange(`${prefix}:ingests`, "0", "-1", "WITHSCORES");
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
