import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { startRedis } from "@booking-events/scripts/services";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import { createProducer } from "../add/producer.ts";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { changeQueue } from "../operate/change-queue.ts";
import { readRecord } from "../shards/queue-record.ts";
import { createConsumer } from "../take/consumer.ts";
import { createRetryNoter } from "../take/note-retry.ts";
import { createStateReader, readShardState } from "./queue-state.ts";
import { recordWorker } from "./worker-registry.ts";

const redis = new Redis(redisUrl());
let prefix: string;

beforeEach(() => {
  prefix = uniquePrefix();
});

afterAll(() => redis.disconnect());

/** Adds an event that was queued at the given time. */
async function add(queue: Queue, timestamp: number, more: { delay?: number; priority?: number } = {}): Promise<void> {
  await queue.add("create", {}, { ...jobOptions, timestamp, ...more });
}

test("an empty queue has no age and nothing in it", async () => {
  expect(await readShardState(redis, prefix)).toMatchObject({
    waiting: 0,
    delayed: 0,
    held: 0,
    givenUp: 0,
    oldestAgeMs: 0,
    finished: 0,
  });
});

test("shows what waits, how old the oldest is, what workers hold, and how many they have finished", async () => {
  const queue = new Queue(queueName, { connection: redis, prefix });
  const now = Date.now();
  await add(queue, now - 60_000);
  await add(queue, now - 30_000);
  await add(queue, now - 90_000, { delay: 3_600_000 });
  await add(queue, now, { priority: 1 });
  const state = await readShardState(redis, prefix);
  expect(state).toMatchObject({ waiting: 3, delayed: 1, held: 0, givenUp: 0, finished: 0 });
  expect(state.oldestAgeMs).toBeGreaterThanOrEqual(59_000);
  expect(state.oldestAgeMs).toBeLessThan(75_000);

  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency: 3,
    maxHeldBytes: 1_000_000,
    handle: () => released,
    onError: () => {},
  });
  consumer.start("a database");
  await waitFor(async () => expect(await readShardState(redis, prefix)).toMatchObject({ waiting: 0, held: 3 }));
  // An event that no worker finishes grows old as well.
  expect((await readShardState(redis, prefix)).oldestAgeMs).toBeGreaterThanOrEqual(59_000);
  release();
  await waitFor(async () => expect(await consumer.readState()).toMatchObject({ held: 0, delayed: 1, finished: 3 }));
  expect((await readShardState(redis, prefix)).oldestAgeMs).toBe(0);
  await consumer.drain();
  await consumer.close();
});

test("an event that failed makes the queue old until it leaves it, wherever it is", async () => {
  const queue = new Queue(queueName, { connection: redis, prefix });
  await add(queue, Date.now() - 3_600_000);
  const held = Promise.withResolvers<void>();
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency: 3,
    maxHeldBytes: 1_000_000,
    async handle({ attempt, queuedAtMs }) {
      if (attempt > 1 || queuedAtMs > Date.now() - 1_800_000) return held.promise;
      throw new Error("23514: not this time");
    },
    onError: () => {},
  });
  consumer.start("a database");
  await waitFor(async () => expect(await readShardState(redis, prefix)).toMatchObject({ delayed: 1, held: 0 }));
  expect((await readShardState(redis, prefix)).oldestAgeMs).toBeGreaterThanOrEqual(3_600_000);
  // Fetched again, it is behind a newer one.
  await add(queue, Date.now());
  await waitFor(async () => expect(await readShardState(redis, prefix)).toMatchObject({ delayed: 0, held: 2 }));
  expect((await readShardState(redis, prefix)).oldestAgeMs).toBeGreaterThanOrEqual(3_600_000);
  held.resolve();
  await waitFor(async () => expect(await readShardState(redis, prefix)).toMatchObject({ held: 0, oldestAgeMs: 0 }));
  expect(await redis.exists(`${prefix}:events:retrying`)).toBe(0);
  await consumer.drain();
  await consumer.close();
});

test("an event that was deleted while it was delayed makes the queue no older", async () => {
  const noteRetry = createRetryNoter(redis, prefix);
  for (const [id, ageMs] of [
    ["gone", 3_600_000],
    ["there", 60_000],
  ] as const) {
    await redis.hset(`${prefix}:events:${id}`, "timestamp", Date.now() - ageMs);
    await noteRetry(id);
  }
  await redis.del(`${prefix}:events:gone`);
  const { oldestAgeMs } = await readShardState(redis, prefix);
  expect(oldestAgeMs).toBeGreaterThanOrEqual(60_000);
  expect(oldestAgeMs).toBeLessThan(3_600_000);
  await noteRetry("there");
  expect(await redis.zrange(`${prefix}:events:retrying`, "0", "-1")).toEqual(["there"]);
});

test("an event that was given up makes the queue as old as it is", async () => {
  await redis.hset(`${prefix}:events:given-up`, "timestamp", Date.now() - 3_600_000);
  await redis.zadd(`${prefix}:events:failed`, Date.now(), "given-up");
  expect((await readShardState(redis, prefix)).oldestAgeMs).toBeGreaterThanOrEqual(3_600_000);
});

test("shows how many workers take events, and whether the queue is paused", async () => {
  expect(await readShardState(redis, prefix)).toMatchObject({ workers: [], isPaused: false });
  const consumers = [1, 2].map((pid) => ({ version: "1", host: "test", pid }));
  for (const worker of consumers) await recordWorker(redis, prefix, worker);
  await changeQueue({ redisServers: redisUrl(), prefix, shardCount: 1 }, { isPaused: true });
  expect(await readShardState(redis, prefix)).toMatchObject({
    workers: [expect.any(String), expect.any(String)],
    isPaused: true,
  });
  expect(await readRecord(redis, prefix)).toMatchObject({ isPaused: true });
  // A worker that was killed removes no record.
  await redis.zadd(`${prefix}:workers`, Math.floor(Date.now() / 1_000) - 30, '["1","test",1]');
  await changeQueue({ redisServers: redisUrl(), prefix, shardCount: 1 }, { isPaused: false });
  expect(await readShardState(redis, prefix)).toMatchObject({ workers: [expect.any(String)], isPaused: false });
  expect(await readRecord(redis, prefix)).toMatchObject({ isPaused: false });
});

test("shows whether Redis keeps what it confirms, also what only CONFIG tells", async () => {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-queue-state-"));
  const server = await startRedis({ dir: folder });
  const operator = new Redis(server.url);
  const producer = createProducer({ redisServers: server.url, prefix, onError: () => {} });
  try {
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    expect((await producer.readState()).isDurable).toBe(true);
    await operator.config("SET", "appendfsync", "everysec");
    expect(await producer.findProblems()).toHaveLength(1);
    expect((await producer.readState()).isDurable).toBe(false);
    expect((await readShardState(operator, prefix)).isDurable).toBe(true);
    await operator.config("SET", "maxmemory-policy", "allkeys-lru");
    expect((await readShardState(operator, prefix)).isDurable).toBe(false);
  } finally {
    await producer.close();
    operator.disconnect();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

test.each([
  ["nothing is", undefined],
  ["another type is", "a text"],
])("is readable although %s in the place of the oldest event", async (_, inItsPlace) => {
  await redis.lpush(`${prefix}:events:wait`, "some-id");
  if (inItsPlace !== undefined) await redis.set(`${prefix}:events:some-id`, inItsPlace);
  expect(await readShardState(redis, prefix)).toMatchObject({ waiting: 1, oldestAgeMs: 0 });
});

test("the state of the queue is that of all shards, and that of a shard that does not answer is the last known", async () => {
  const shards = [uniquePrefix(), uniquePrefix()];
  let isAnswering = true;
  const read = createStateReader(() => [
    [0, () => readShardState(redis, shards[0] ?? "")],
    [1, () => (isAnswering ? readShardState(redis, shards[1] ?? "") : Promise.reject(new Error("down")))],
  ]);
  for (const [shard, ageMs] of [
    [0, 60_000],
    [1, 90_000],
    [1, 30_000],
  ] as const) {
    await add(new Queue(queueName, { connection: redis, prefix: shards[shard] ?? "" }), Date.now() - ageMs);
    await recordWorker(redis, shards[shard] ?? "", { version: "1", host: "test", pid: 1 });
  }
  const whole = { waiting: 3, workers: 1 };
  expect(await read()).toMatchObject({ ...whole, isComplete: true });
  expect((await read()).oldestAgeMs).toBeGreaterThanOrEqual(89_000);
  isAnswering = false;
  expect(await read()).toMatchObject({ ...whole, isComplete: false });
  const none = createStateReader(() => [[0, () => Promise.reject(new Error("down"))]]);
  await expect(none()).rejects.toThrow("No shard");
});
