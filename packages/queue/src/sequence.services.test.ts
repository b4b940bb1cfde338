import { redisUrl, uniquePrefix } from "@booking-events/scripts/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { reserveSequence } from "./sequence.ts";

let redis: Redis;
let prefix: string;

beforeAll(() => {
  redis = new Redis(redisUrl());
});

beforeEach(() => {
  prefix = uniquePrefix();
});

afterAll(() => redis.disconnect());

async function clockMicroseconds(): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(microseconds);
}

test("sequence numbers rise, however many ask at once, and are exact", async () => {
  const numbers = await Promise.all(Array.from({ length: 500 }, () => reserveSequence(redis, prefix, 1)));
  expect(new Set(numbers).size).toBe(500);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(numbers.every(Number.isSafeInteger)).toBe(true);
});

test("a sequence number is the time of Redis' clock in microseconds", async () => {
  const before = await clockMicroseconds();
  const sequence = await reserveSequence(redis, prefix, 1);
  expect(sequence).toBeGreaterThanOrEqual(before);
  expect(sequence).toBeLessThanOrEqual(await clockMicroseconds());
});

test("a block of numbers is reserved as a whole", async () => {
  const first = await reserveSequence(redis, prefix, 1_000_000_000);
  expect(await reserveSequence(redis, prefix, 1)).toBe(first + 1_000_000_000);
});

test("when the clock is behind the last number, numbers go on from there", async () => {
  const ahead = (await clockMicroseconds()) + 3_600_000_000;
  await redis.set(`${prefix}:sequence`, String(ahead));
  expect(await reserveSequence(redis, prefix, 1)).toBe(ahead + 1);
  expect(await reserveSequence(redis, prefix, 1)).toBe(ahead + 2);
});

test("after Redis has lost its data, new numbers still come after the old ones", async () => {
  const before = await reserveSequence(redis, prefix, 1);
  await redis.del(`${prefix}:sequence`);
  expect(await reserveSequence(redis, prefix, 1)).toBeGreaterThan(before);
});
