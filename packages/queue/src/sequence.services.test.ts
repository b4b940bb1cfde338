import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "@booking-events/scripts/services";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/scripts/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { reserveSequenceInLua } from "./sequence.ts";

let redis: Redis;
let prefix: string;

beforeAll(() => {
  redis = new Redis(redisUrl());
});

beforeEach(() => {
  prefix = uniquePrefix();
});

afterAll(() => redis.disconnect());

const reserveAlone = `
${reserveSequenceInLua}
local time = redis.call('TIME')
return string.format('%.0f', reserveSequence(KEYS[1], KEYS[2], time[1] * 1000000 + time[2], ARGV[1]))
`;

async function reserveSequence(client: Redis, of: string, count: number): Promise<number> {
  return Number(await client.eval(reserveAlone, 2, `${of}:sequence`, `${of}:last-sequence`, count));
}

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

describe("when the clock is behind the last number", () => {
  test("numbers go on from there", async () => {
    const first = await reserveSequence(redis, prefix, 3_600_000_000);
    const last = first + 3_600_000_000 - 1;
    expect(await reserveSequence(redis, prefix, 1)).toBe(last + 1);
    expect(await reserveSequence(redis, prefix, 1)).toBe(last + 2);
  });

  test("and Redis was restarted, numbers still come after all those that were given out before", async () => {
    await reserveSequence(redis, prefix, 3_600_000_000);
    const older = await redis.get(`${prefix}:last-sequence`);
    const last = await reserveSequence(redis, prefix, 1_000_000);
    // What the next run may find: an older last number, of a run that is not its own.
    await redis.set(`${prefix}:last-sequence`, `another${older}`);
    const next = await reserveSequence(redis, prefix, 1);
    expect(next).toBeGreaterThan(last + 1_000_000 - 1);
    expect(await reserveSequence(redis, prefix, 1)).toBe(next + 1);
  });

  test("and its last number is gone, likewise", async () => {
    const last = (await reserveSequence(redis, prefix, 3_600_000_000)) + 3_600_000_000 - 1;
    await redis.del(`${prefix}:last-sequence`);
    expect(await reserveSequence(redis, prefix, 1)).toBeGreaterThan(last);
  });
});

test("a number is seldom worth a write to disk", async () => {
  await reserveSequence(redis, prefix, 1);
  const bound = await redis.get(`${prefix}:sequence`);
  await reserveSequence(redis, prefix, 10);
  expect(await redis.get(`${prefix}:sequence`)).toBe(bound);
});

test("after Redis has lost its data, new numbers still come after the old ones", async () => {
  const before = await reserveSequence(redis, prefix, 1);
  await redis.del(`${prefix}:sequence`, `${prefix}:last-sequence`);
  expect(await reserveSequence(redis, prefix, 1)).toBeGreaterThan(before);
});

describe("a server that is killed and starts again", () => {
  test("has the bound on its disk, and goes on after it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "booking-events-sequence-"));
    const server = await startRedis({ dir: folder });
    const client = new Redis(server.url);
    try {
      await waitFor(() => client.status === "ready");
      const last = (await reserveSequence(client, prefix, 3_600_000_000)) + 3_600_000_000 - 1;
      server.kill("SIGKILL");
      await server.ended();
      await server.restart();
      await waitFor(() => client.ping());
      expect(await client.exists(`${prefix}:last-sequence`)).toBe(0);
      expect(await reserveSequence(client, prefix, 1)).toBeGreaterThan(last);
    } finally {
      client.disconnect();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
