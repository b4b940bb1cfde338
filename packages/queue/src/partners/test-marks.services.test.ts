import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
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
