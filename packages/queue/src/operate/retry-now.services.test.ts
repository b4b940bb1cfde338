import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { readShardState } from "../look/queue-state.ts";
import { type Consumer, createConsumer } from "../take/consumer.ts";
import { createRetryNoter } from "../take/note-retry.ts";
import { changeQueue } from "./change-queue.ts";
import { retryNow } from "./retry-now.ts";

const redis = new Redis(redisUrl());
let prefix: string;
let queue: Queue;
const consumers: Consumer[] = [];

beforeEach(() => {
  prefix = uniquePrefix();
  queue = new Queue(queueName, { connection: redis, prefix });
});

afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close()));
});

afterAll(() => redis.disconnect());

const retry = (code?: string) => retryNow({ redisServers: redisUrl(), prefix, code });

/** Adds events that failed and wait for hours for their next attempt. */
async function addDelayed(ids: string[], code: string, queuedAtMs = Date.now()): Promise<void> {
  const noteRetry = createRetryNoter(redis, prefix);
  await queue.addBulk(
    ids.map((jobId) => ({
      name: "create",
      data: {},
      opts: { ...jobOptions, jobId, timestamp: queuedAtMs, delay: 3_600_000 },
    })),
  );
  await Promise.all(
    ids.map(async (id) => {
      await redis.hset(`${prefix}:events:${id}`, "failedReason", `${code}: PostgreSQL refused to apply the event.`);
      await noteRetry(id);
    }),
  );
}

function consume(handle: (id: string, attempt: number) => Promise<void>): void {
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency: 1,
    maxHeldBytes: 1_000_000,
    handle: ({ jobId, attempt }) => handle(jobId, attempt),
    onError: () => {},
  });
  consumers.push(consumer);
  consumer.start("a database");
}

test("events that wait for their next attempt are delivered at once, the oldest first, and others follow", async () => {
  await addDelayed(["later-1", "later-2"], "23514", Date.now() - 1_000);
  await addDelayed(["first"], "23514", Date.now() - 2_000);
  expect(await retry()).toEqual({ retried: 3, delayed: 0 });
  const delivered: string[] = [];
  consume(async (id) => void delivered.push(id));
  await waitFor(() => expect(delivered).toEqual(["first", "later-1", "later-2"]));
  expect(await retry()).toEqual({ retried: 0, delayed: 0 });
});

test("a worker that sleeps until the next attempt is woken", async () => {
  const delivered: string[] = [];
  consume(async (id) => void delivered.push(id));
  await addDelayed(["one"], "23514");
  await waitFor(async () => expect(await redis.exists(`${prefix}:events:marker`)).toBe(0));
  await retry();
  await waitFor(() => expect(delivered).toEqual(["one"]));
});

test("of all codes, only the given one is retried", async () => {
  await addDelayed(["constraint"], "23514");
  await addDelayed(["other"], "2351");
  await addDelayed(["bug"], "TypeError");
  expect(await retry("23514")).toEqual({ retried: 1, delayed: 2 });
  expect(await redis.lrange(`${prefix}:events:wait`, 0, -1)).toEqual(["constraint"]);
  expect(await retry("55P03")).toEqual({ retried: 0, delayed: 2 });
});

test("none is left out or moved twice, however many were queued in the same millisecond", async () => {
  const ids = Array.from({ length: 1_700 }, (_, number) => `event-${String(number).padStart(4, "0")}`);
  await addDelayed(ids.slice(0, 1_300), "23514", 1_795_000_000_000);
  await addDelayed(ids.slice(1_300), "23514", 1_795_000_000_001);
  expect(await retry()).toEqual({ retried: 1_700, delayed: 0 });
  expect(await redis.lrange(`${prefix}:events:wait`, 0, -1)).toEqual(ids.toReversed());
});

test("an event that a worker holds is left to it, and one that fails again waits again", async () => {
  await addDelayed(["one", "two"], "23514");
  const attempts: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  consume(async (id) => {
    attempts.push(id);
    await released;
    throw new Error("23514: not yet");
  });
  await retry();
  await waitFor(() => expect(attempts).toEqual(["one"]));
  expect(await retry()).toEqual({ retried: 0, delayed: 0 });
  expect(await readShardState(redis, prefix)).toMatchObject({ waiting: 1, held: 1 });
  release();
  await waitFor(() => expect(attempts.length).toBeGreaterThanOrEqual(2));
});

test("while the queue is paused, events are brought forward and no worker is woken", async () => {
  await changeQueue({ redisServers: redisUrl(), prefix, shardCount: 1 }, { isPaused: true });
  await addDelayed(["one"], "23514");
  await redis.del(`${prefix}:events:marker`);
  expect(await retry()).toEqual({ retried: 1, delayed: 0 });
  expect(await redis.exists(`${prefix}:events:marker`)).toBe(0);
});
