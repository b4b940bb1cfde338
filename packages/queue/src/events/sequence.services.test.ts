import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { maxClockDifferenceMs } from "@booking-events/runtime";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createRedisClock, type RedisClock } from "../redis/clock.ts";
import { SequenceCheck, sequenceKey, takeSequenceInLua } from "./sequence.ts";

let redis: Redis;
let clock: RedisClock;
let prefix: string;

beforeAll(() => {
  redis = new Redis(redisUrl());
  clock = createRedisClock(redis);
});

beforeEach(() => {
  prefix = uniquePrefix();
});

afterAll(() => redis.disconnect());

const takeAlone = `
${takeSequenceInLua}
local time = redis.call('TIME')
local first = takeSequence(KEYS[1], time[1] * 1000000 + time[2], tonumber(ARGV[2]), ARGV[1])
return first and string.format('%.0f', first)
`;

/** NaN if it was refused. */
async function takeSequence(client: Redis, count: number, hostMs = Date.now()): Promise<number> {
  return Number((await client.eval(takeAlone, 1, sequenceKey(prefix), count, hostMs)) ?? Number.NaN);
}

async function clockMicroseconds(): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(microseconds);
}

function findSequenceProblems(check = new SequenceCheck()): Promise<string[]> {
  return check.findProblems(redis, prefix, clock);
}

/** Simulates a clock that was this far ahead when the last number was assigned. */
async function setLastAhead(client: Redis, aheadMs: number): Promise<number> {
  const last = (Date.now() + aheadMs) * 1_000;
  await client.set(sequenceKey(prefix), last);
  return last;
}

test("sequence numbers increase, however many callers there are, and are exact", async () => {
  const numbers = await Promise.all(Array.from({ length: 500 }, () => takeSequence(redis, 1)));
  expect(new Set(numbers).size).toBe(500);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(numbers.every(Number.isSafeInteger)).toBe(true);
});

test("a sequence number is the time of Redis' clock in microseconds", async () => {
  const before = await clockMicroseconds();
  const sequence = await takeSequence(redis, 1);
  expect(sequence).toBeGreaterThanOrEqual(before);
  expect(sequence).toBeLessThanOrEqual(await clockMicroseconds());
});

test("a block of numbers is consecutive", async () => {
  const first = await takeSequence(redis, 100_000_000);
  expect(await takeSequence(redis, 1)).toBe(first + 100_000_000);
});

test("when the clock is behind the last number, numbers continue from it", async () => {
  const last = await setLastAhead(redis, maxClockDifferenceMs / 2);
  expect(await takeSequence(redis, 1)).toBe(last + 1);
  expect(await takeSequence(redis, 1)).toBe(last + 2);
});

test("after Redis has lost its data, new numbers are still larger than the old ones", async () => {
  const before = await takeSequence(redis, 1);
  await redis.del(sequenceKey(prefix));
  expect(await takeSequence(redis, 1)).toBeGreaterThan(before);
});

describe("a number too far ahead of the host's clock", () => {
  test("is not assigned, and the sequence does not change", async () => {
    const last = await setLastAhead(redis, maxClockDifferenceMs + 60_000);
    expect(await takeSequence(redis, 1)).toBeNaN();
    expect(await redis.get(sequenceKey(prefix))).toBe(String(last));
    // A host whose clock agrees with the last number.
    expect(await takeSequence(redis, 1, Date.now() + maxClockDifferenceMs)).toBe(last + 1);
  });

  test("may not be the last of a block", async () => {
    expect(await takeSequence(redis, (maxClockDifferenceMs + 60_000) * 1_000)).toBeNaN();
    expect(await redis.exists(sequenceKey(prefix))).toBe(0);
  });

  test("is reported to the operator, with the clock that is wrong", async () => {
    expect(await findSequenceProblems()).toEqual([]);
    await setLastAhead(redis, maxClockDifferenceMs + 60_000);
    expect(await findSequenceProblems()).toEqual([
      expect.stringMatching(/^The last sequence number is 6 minutes ahead of this host's clock\./),
    ]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await findSequenceProblems()).toEqual([
      expect.stringMatching(/^Redis' clock is 60 minutes ahead of this host's\./),
    ]);
  });

  test("is reported in the same words by each check, so it is not logged several times a second", async () => {
    const ahead = await setLastAhead(redis, maxClockDifferenceMs + 1_000);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    onTestFinished(() => void vi.useRealTimers());
    const check = new SequenceCheck();
    const told = await findSequenceProblems(check);
    expect(told).toHaveLength(1);
    for (const passedMs of [500, 500, 1_000]) {
      vi.setSystemTime(Date.now() + passedMs);
      expect(await findSequenceProblems(check)).toEqual(told);
    }
    vi.setSystemTime(ahead / 1_000 - maxClockDifferenceMs + 60_000);
    expect(await findSequenceProblems(check)).toEqual([]);
  });
});

describe("a number while Redis' clock is too far behind the host's", () => {
  const behindMs = maxClockDifferenceMs + 60_000;

  test.each([
    ["the first", async () => {}],
    ["one that follows another of the same clock", () => setLastAhead(redis, 0)],
    ["one that follows another of the right time", () => setLastAhead(redis, behindMs)],
  ])("is not assigned, and the sequence does not change: %s", async (_, prepare) => {
    await prepare();
    const before = await redis.get(sequenceKey(prefix));
    expect(await takeSequence(redis, 1, Date.now() + behindMs)).toBeNaN();
    expect(await redis.get(sequenceKey(prefix))).toBe(before);
    await redis.del(sequenceKey(prefix));
    expect(await takeSequence(redis, 1, Date.now() + maxClockDifferenceMs - 60_000)).not.toBeNaN();
  });

  test("is reported to the operator, with the clocks that differ", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 7_200_000 + 1_000 });
    onTestFinished(() => void vi.useRealTimers());
    const told = ["Redis' clock is 2 hours behind this host's. Correct the wrong clock."];
    expect(await findSequenceProblems()).toEqual(told);
    await setLastAhead(redis, -3_600_000);
    expect(await findSequenceProblems()).toEqual(told);
  });

  test("is reported until the clocks agree clearly, and then no longer", async () => {
    const startMs = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: startMs });
    onTestFinished(() => void vi.useRealTimers());
    const check = new SequenceCheck();
    const findAt = async (behindMs: number) => {
      vi.setSystemTime(Date.now() + behindMs);
      const found = await findSequenceProblems(check);
      vi.setSystemTime(startMs);
      return found;
    };
    expect(await findAt(maxClockDifferenceMs - 5_000)).toEqual([]);
    const told = await findAt(maxClockDifferenceMs + 5_000);
    expect(told).toHaveLength(1);
    expect(await findAt(maxClockDifferenceMs - 5_000)).toEqual(told);
    expect(await findAt(maxClockDifferenceMs + 20_000)).toEqual(told);
    expect(await findAt(maxClockDifferenceMs - 60_000)).toEqual([]);
    expect(await findAt(maxClockDifferenceMs - 5_000)).toEqual([]);
  });
});

describe("a server that is killed and starts again", () => {
  let folder: string;
  let server: DataServer;
  let client: Redis;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "booking-events-sequence-"));
    server = await startRedis({ dir: folder });
    client = new Redis(server.url);
    await waitFor(() => client.status === "ready");
  });

  afterEach(async () => {
    client.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function killAndRestart(): Promise<void> {
    server.kill("SIGKILL");
    await server.ended();
    await server.restart();
    await waitFor(() => client.ping());
  }

  test("continues after its last number even if its clock is behind", async () => {
    const last = await setLastAhead(client, maxClockDifferenceMs / 2);
    await killAndRestart();
    expect(await takeSequence(client, 1)).toBe(last + 1);
  });

  test("and then loses its data, orders new events after all others", async () => {
    await takeSequence(client, 1);
    await killAndRestart();
    const last = await takeSequence(client, 1);
    await client.flushall();
    expect(await takeSequence(client, 1)).toBeGreaterThan(last);
  });
});
