import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { findSequenceProblems, maxDeviationMs, sequenceKey, takeSequenceInLua } from "./sequence.ts";

let redis: Redis;
let prefix: string;

beforeAll(() => {
  redis = new Redis(redisUrl());
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
  const last = await setLastAhead(redis, maxDeviationMs / 2);
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
    const last = await setLastAhead(redis, maxDeviationMs + 60_000);
    expect(await takeSequence(redis, 1)).toBeNaN();
    expect(await redis.get(sequenceKey(prefix))).toBe(String(last));
    // A host whose clock agrees with the last number.
    expect(await takeSequence(redis, 1, Date.now() + maxDeviationMs)).toBe(last + 1);
  });

  test("may not be the last of a block", async () => {
    expect(await takeSequence(redis, (maxDeviationMs + 60_000) * 1_000)).toBeNaN();
    expect(await redis.exists(sequenceKey(prefix))).toBe(0);
  });

  test("is reported to the operator, with the clock that is wrong", async () => {
    expect(await findSequenceProblems(redis, prefix)).toEqual([]);
    await setLastAhead(redis, maxDeviationMs + 60_000);
    expect(await findSequenceProblems(redis, prefix)).toEqual([
      expect.stringMatching(/^The last sequence number is [56] minutes ahead of this host's clock\./),
    ]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await findSequenceProblems(redis, prefix)).toEqual([
      expect.stringMatching(/^Redis' clock is (59|60) minutes ahead of this host's\./),
    ]);
  });

  test("is reported in the same words by each check, so it is not logged several times a second", async () => {
    await setLastAhead(redis, maxDeviationMs + 90_000);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    onTestFinished(() => void vi.useRealTimers());
    const told = await findSequenceProblems(redis, prefix);
    vi.setSystemTime(Date.now() + 1_234);
    expect(await findSequenceProblems(redis, prefix)).toEqual(told);
  });
});

describe("a first number too far behind the host's clock", () => {
  const behindMs = maxDeviationMs + 60_000;

  test("is not assigned, and the sequence does not change", async () => {
    expect(await takeSequence(redis, 1, Date.now() + behindMs)).toBeNaN();
    expect(await redis.exists(sequenceKey(prefix))).toBe(0);
    expect(await takeSequence(redis, 1, Date.now() + maxDeviationMs - 60_000)).not.toBeNaN();
  });

  test("is none that follows another, however far behind both are", async () => {
    const last = await setLastAhead(redis, 0);
    expect(await takeSequence(redis, 1, Date.now() + 1_000 * behindMs)).toBeGreaterThan(last);
  });

  test("is reported to the operator, with the clocks that differ", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await findSequenceProblems(redis, prefix)).toEqual([
      expect.stringMatching(/^Redis has no data, and its clock is (59|60) minutes behind this host's\. Correct/),
    ]);
    await setLastAhead(redis, -3_600_000);
    expect(await findSequenceProblems(redis, prefix)).toEqual([]);
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
    const last = await setLastAhead(client, maxDeviationMs / 2);
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
