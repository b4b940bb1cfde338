import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { type Consumer, createConsumer } from "./consumer.ts";
import type { Delivery } from "./delivery.ts";

let prefix: string;
let redis: Redis;
let queue: Queue;
const consumers: Consumer[] = [];

beforeEach(() => {
  prefix = uniquePrefix();
  redis = new Redis(redisUrl(), { maxRetriesPerRequest: null });
  queue = new Queue(queueName, { connection: redis, prefix });
});

afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close()));
  await queue.obliterate({ force: true });
  await queue.close();
  redis.disconnect();
});

/** Adds events whose text has the given number of characters, each of which takes at most two bytes. */
async function add(count: number, characters: number): Promise<void> {
  const data = "x".repeat(characters - 2);
  await queue.addBulk(Array.from({ length: count }, () => ({ name: "create", data, opts: jobOptions })));
}

/** A consumer that holds its events until the test releases them. */
function hold(maxHeldBytes: number, { concurrency = 250, isAuto = false } = {}) {
  const handled: Delivery[] = [];
  const held: { bytes: number; remove: () => void }[] = [];
  let peakBytes = 0;
  const remove = (count = held.length) => {
    for (const each of held.splice(0, count)) each.remove();
  };
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency,
    maxHeldBytes,
    onError: () => {},
    handle: (delivery) =>
      new Promise((resolve) => {
        handled.push(delivery);
        held.push({ bytes: 2 * delivery.text.length, remove: resolve });
        peakBytes = Math.max(
          peakBytes,
          held.reduce((sum, { bytes }) => sum + bytes, 0),
        );
        if (isAuto) setImmediate(() => remove());
      }),
  });
  consumers.push(consumer);
  consumer.start("a database");
  return { consumer, handled, held, remove, peakBytes: () => peakBytes };
}

test("a consumer stops fetching when its events' text reaches the limit, until there is room", async () => {
  await add(40, 10_000);
  const { consumer, handled, held, remove, peakBytes } = hold(100_000);
  await waitFor(() => expect(held).toHaveLength(5));
  expect(await consumer.readState()).toMatchObject({ waiting: 35, delayed: 0 });
  for (let count = 6; count <= 40; count += 1) {
    remove(1);
    await waitFor(() => expect(handled).toHaveLength(count));
  }
  remove();
  await waitFor(async () => expect(await queue.getJobCounts("active", "waiting")).toEqual({ active: 0, waiting: 0 }));
  expect(peakBytes()).toBe(100_000);
});

test("limits that are changed while events are held apply to the next ones", async () => {
  await add(40, 10_000);
  const { consumer, handled, held, remove } = hold(100_000);
  await waitFor(() => expect(held).toHaveLength(5));
  consumer.limitTo({ concurrency: 250, maxHeldBytes: 40_000 });
  remove(3);
  // Two events fill the new limit: none is fetched.
  expect(held).toHaveLength(2);
  remove(1);
  await waitFor(() => expect(handled).toHaveLength(6));
  expect(held).toHaveLength(2);

  consumer.limitTo({ concurrency: 3, maxHeldBytes: 100_000 });
  remove(1);
  await waitFor(() => expect(held).toHaveLength(3));
  for (let count = handled.length + 1; count <= 20; count += 1) {
    remove(1);
    await waitFor(() => expect(handled).toHaveLength(count));
    expect(held).toHaveLength(3);
  }
});

test("an event larger than the limit is processed alone", async () => {
  await add(5, 10_000);
  await add(5, 100);
  const { handled, peakBytes } = hold(1_000, { isAuto: true });
  await waitFor(() => expect(handled).toHaveLength(10));
  expect(peakBytes()).toBe(20_000);
});

test("many small events that finish together are not replaced by as many large ones", async () => {
  await add(200, 100);
  await add(200, 10_000);
  const { handled, held, remove, peakBytes } = hold(400_000);
  await waitFor(() => expect(held.length).toBeGreaterThanOrEqual(200));
  await waitFor(async () => {
    remove();
    expect(handled).toHaveLength(400);
  });
  remove();
  // Four calls remove the small events, and three loops fetch on their own.
  expect(peakBytes()).toBeLessThan(400_000 + 7 * 20_000);
});

test("nor are small events that fail together", async () => {
  await add(200, 100);
  const failing = new Set((await queue.getWaiting()).map(({ id }) => id));
  await add(100, 10_000);
  let heldBytes = 0;
  let peakBytes = 0;
  const { promise: mayFail, resolve: fail } = Promise.withResolvers<void>();
  let begun = 0;
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency: 250,
    maxHeldBytes: 400_000,
    onError: () => {},
    async handle({ jobId, text }) {
      begun += 1;
      heldBytes += 2 * text.length;
      peakBytes = Math.max(peakBytes, heldBytes);
      if (begun === 200) fail();
      await mayFail;
      await new Promise(setImmediate);
      heldBytes -= 2 * text.length;
      if (failing.delete(jobId)) throw new Error("not this time");
    },
  });
  consumers.push(consumer);
  consumer.start("a database");
  await waitFor(() => expect(begun).toBe(500));
  expect(peakBytes).toBeLessThan(400_000 + 7 * 20_000);
});

test.each(["drain", "close"] as const)("%s ends while the consumer waits for room", async (end) => {
  await add(10, 10_000);
  const { consumer, handled, held, remove } = hold(40_000);
  await waitFor(() => expect(held).toHaveLength(2));
  const ended = consumer[end]();
  if (end === "drain") remove();
  await ended;
  expect(handled).toHaveLength(2);
  if (end === "drain") {
    expect(await queue.getJobCounts("active", "waiting")).toEqual({ active: 0, waiting: 8 });
    const next = hold(1_000_000, { isAuto: true });
    await waitFor(() => expect(next.handled).toHaveLength(8));
  }
});

test("another process gets the events for which one has no room", async () => {
  const full = hold(20_000);
  await add(1, 10_000);
  await waitFor(() => expect(full.held).toHaveLength(1));
  const other = hold(1_000_000, { isAuto: true });
  for (let count = 1; count <= 20; count += 1) {
    await add(1, 10_000);
    await waitFor(() => expect(other.handled).toHaveLength(count), { timeoutMs: 4_000 });
  }
  expect(full.handled).toHaveLength(1);
});

test("a consumer that waits for room keeps its locks", async () => {
  await add(3, 10_000);
  const { consumer: _, handled, held } = hold(20_000);
  await waitFor(() => expect(held).toHaveLength(1));
  const lock = `${prefix}:${queueName}:${handled[0]?.jobId}:lock`;
  const before = await redis.pttl(lock);
  await waitFor(async () => expect(await redis.pttl(lock)).toBeLessThan(before - 100));
  await waitFor(async () => expect(await redis.pttl(lock)).toBeGreaterThan(before - 100));
});
