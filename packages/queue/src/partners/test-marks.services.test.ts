import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { openRecords } from "./records.ts";
import { claimTestMark } from "./test-marks.ts";

const redis = new Redis(redisUrl());
afterAll(() => redis.disconnect());

// By any Redis from 6.2 on.
test.each([true, false])(
  "the first claim of a partner (test: %s) is for good, and for that partner only",
  async (isTest) => {
    const prefix = uniquePrefix();
    const claims = Array.from({ length: 3 }, () => claimTestMark(redis, prefix, "acme", isTest));
    expect(await Promise.all(claims)).toEqual([isTest, isTest, isTest]);
    expect(await claimTestMark(redis, prefix, "acme", !isTest)).toBe(isTest);
    expect(await claimTestMark(redis, prefix, "zenith", !isTest)).toBe(!isTest);
  },
);

test("a claim waits for a Redis that is late", async () => {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-test-marks-"));
  const server = await startRedis({ dir: folder });
  const operator = new Redis(server.url);
  const records = openRecords({
    redisServers: server.url,
    prefix: uniquePrefix(),
    connectionName: "test",
    onError: () => {},
  });
  try {
    expect(await records.claimTestMark("acme", true)).toBe(true);
    await operator.call("CLIENT", "PAUSE", "800", "ALL");
    expect(await records.claimTestMark("acme", false)).toBe(true);
  } finally {
    records.close();
    operator.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
