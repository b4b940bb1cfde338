import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import {
  type Consumer,
  changeQueue,
  createConsumer,
  locateShard,
  readQueueRecord,
  shardNumbers,
} from "@booking-events/queue";
import { createLogger } from "@booking-events/runtime";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { QueueWatch } from "./watch-queue.ts";

const logger = createLogger({ name: "test", level: "silent" });
let prefix: string;
let redis: Redis;
const consumers: Consumer[] = [];

beforeEach(() => {
  prefix = uniquePrefix();
  redis = new Redis(redisUrl());
});

afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close()));
  redis.disconnect();
});

const queueOf = (shardCount: number) => ({ redisServers: redisUrl(), prefix, shardCount });

/** A worker with a database, as far as it concerns its shards. */
async function startWorker(database: string, shardCount: number, isEmpty = false) {
  const opened = new Set<number>();
  const shards = new Map(
    shardNumbers(shardCount).map((shard) => {
      const limits = { concurrency: 1, maxHeldBytes: 1 };
      const location = locateShard(queueOf(shardCount), shard);
      const consumer = createConsumer({ ...location, ...limits, handle: async () => {}, onError: () => {} });
      consumers.push(consumer);
      const open = () => void opened.add(shard);
      return [shard, { consumer, open, close: () => void opened.delete(shard) }];
    }),
  );
  const watch = new QueueWatch({
    shards: () => shards,
    database: () => database,
    isEmpty: async () => isEmpty,
    logger,
  });
  await waitFor(() => [...shards.values()].every(({ consumer }) => consumer.isConnected()));
  return { look: () => watch.look(), watch, opened };
}

/** The record in shard 0, and the copies in the others. */
function readRecords(shardCount: number) {
  const reading = shardNumbers(shardCount).map((shard) => readQueueRecord(locateShard(queueOf(shardCount), shard)));
  return Promise.all(reading);
}

function forget(shard: number): Promise<number> {
  return redis.del(`${locateShard(queueOf(1), shard).prefix}:events:meta`);
}

test("of databases that start at the same moment, one is recorded, and workers of the others take nothing", async () => {
  const names = ["one", "two", "three"];
  const workers = await Promise.all(names.flatMap((name) => [startWorker(name, 4), startWorker(name, 1)]));
  await Promise.all(workers.map(({ look }) => look()));
  const { database } = await readQueueRecord(queueOf(4));
  expect(names).toContain(database);
  await Promise.all(workers.map(({ look }) => look()));
  for (const [index, { watch, opened }] of workers.entries()) {
    const isRight = names[Math.floor(index / 2)] === database;
    expect(watch.problems.length).toBe(isRight ? 0 : 1);
    expect(opened.size).toBe(isRight ? (index % 2 === 0 ? 4 : 1) : 0);
  }
  expect(await readRecords(4)).toEqual(Array.from({ length: 4 }, () => ({ database, isPaused: false })));
});

test("the sentence names both databases and the command, and says if this one is empty", async () => {
  await (await startWorker("right", 1)).look();
  const [other, empty] = await Promise.all([startWorker("other", 1), startWorker("empty", 1, true)]);
  await Promise.all([other.look(), empty.look()]);
  expect(other.watch.problems).toEqual([expect.stringMatching(/right.* another one, other: .*ops queue attach$/)]);
  expect(empty.watch.problems).toEqual([expect.stringMatching(/right.* an empty one, empty: /)]);
});

test("a pause holds for shards that are added meanwhile, and its end for shards that have gone and come back", async () => {
  const small = await startWorker("right", 1);
  await small.look();
  const all = await startWorker("right", 4);
  await all.look();
  await changeQueue(queueOf(1), { isPaused: true });
  expect((await readRecords(4)).map(({ isPaused }) => isPaused)).toEqual([true, false, false, false]);
  const large = await startWorker("right", 4);
  await large.look();
  expect((await readRecords(4)).map(({ isPaused }) => isPaused)).toEqual([true, true, true, true]);
  expect({ warnings: large.watch.warnings.length, opened: large.opened.size }).toEqual({ warnings: 1, opened: 4 });

  await changeQueue(queueOf(1), { isPaused: false });
  await large.look();
  expect((await readRecords(4)).map(({ isPaused }) => isPaused)).toEqual([false, false, false, false]);
  expect(large.watch.warnings).toEqual([]);
});

test("a pause before the first worker holds for all shards, and its end too", async () => {
  await changeQueue(queueOf(4), { isPaused: true });
  await changeQueue(queueOf(1), { isPaused: false });
  const worker = await startWorker("right", 4);
  await worker.look();
  expect(await readRecords(4)).toEqual(Array.from({ length: 4 }, () => ({ database: "right", isPaused: false })));
});

test("a queue that is given another database is so as a whole, even if the command was cut off", async () => {
  const [former, next] = await Promise.all([startWorker("former", 4), startWorker("next", 4)]);
  await former.look();
  await next.look();
  expect([former.opened.size, next.opened.size]).toEqual([4, 0]);
  await changeQueue(queueOf(1), { database: "next" });
  await Promise.all([former.look(), next.look()]);
  expect([former.opened.size, next.opened.size]).toEqual([0, 4]);
  expect((await readRecords(4)).map(({ database }) => database)).toEqual(["next", "next", "next", "next"]);
});

test("after Redis has lost its data, the database is recorded again, and never one that was refused", async () => {
  const [right, wrong] = await Promise.all([startWorker("right", 4), startWorker("wrong", 4)]);
  await right.look();
  await wrong.look();
  for (const shard of shardNumbers(4)) await forget(shard);
  await wrong.look();
  expect(await readQueueRecord(queueOf(4))).toEqual({ database: null, isPaused: false });
  expect({ opened: wrong.opened.size, problems: wrong.watch.problems.length }).toEqual({ opened: 0, problems: 1 });
  await right.look();
  expect((await readRecords(4)).map(({ database }) => database)).toEqual(["right", "right", "right", "right"]);
});

test("after one node has lost its data, the other shards tell the database and the pause", async () => {
  await (await startWorker("right", 4)).look();
  await changeQueue(queueOf(4), { isPaused: true });
  await forget(0);
  const [fresh, again] = await Promise.all([startWorker("fresh", 4), startWorker("right", 4)]);
  await fresh.look();
  expect({ opened: fresh.opened.size, problems: fresh.watch.problems.length }).toEqual({ opened: 0, problems: 1 });
  await again.look();
  await forget(2);
  await again.look();
  expect(await readRecords(4)).toEqual(Array.from({ length: 4 }, () => ({ database: "right", isPaused: true })));
});

test("while shard 0 does not answer, the others are served if they know the database", async () => {
  await (await startWorker("right", 4)).look();
  await forget(3);
  const [worker, other] = await Promise.all([startWorker("right", 4), startWorker("other", 4)]);
  // The hash is no hash, so each command on it fails.
  await redis.set(`${prefix}:events:meta`, "damaged");
  await worker.look();
  await other.look();
  expect([...worker.opened].toSorted()).toEqual([1, 2]);
  expect({ opened: other.opened.size, problems: other.watch.problems.length }).toEqual({ opened: 0, problems: 1 });
});
