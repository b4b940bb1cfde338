import type { HoldLimits } from "@booking-events/queue";
import { createLogger } from "@booking-events/runtime";
import { beforeEach, expect, test } from "vitest";
import { type ServedShard, ShardService } from "./serve-shards.ts";

/** What senders have recorded, and what is in the queue. */
let recorded: number[];
let notEmpty: Set<number>;
/** Numbers that senders still use. */
let inUse: Set<number>;
/** What the service does, in order. */
let done: string[];
let limits: Map<number, HoldLimits>;
/** Shards whose Redis does not answer. */
let silent: Set<number>;

beforeEach(() => {
  recorded = [];
  notEmpty = new Set();
  inUse = new Set();
  done = [];
  limits = new Map();
  silent = new Set();
});

function open(shard: number, share: HoldLimits): ServedShard {
  done.push(`open ${shard}`);
  limits.set(shard, share);
  return {
    consumer: {
      limitTo: (share) => void limits.set(shard, share),
      isEmpty: () => (silent.has(shard) ? new Promise(() => {}) : Promise.resolve(!notEmpty.has(shard))),
      readShardCounts: async () => recorded,
      async forgetShardCount(count) {
        if (inUse.has(count)) return false;
        recorded = recorded.filter((each) => each !== count);
        return true;
      },
      async close() {
        done.push(`close ${shard}`);
        limits.delete(shard);
      },
    },
    start: () => void done.push(`start ${shard}`),
    drain: async () => void done.push(`drain ${shard}`),
  };
}

function serve(shardCount: number) {
  const logger = createLogger({ name: "test", level: "silent" });
  return new ShardService({ shardCount, limits: { concurrency: 100, maxHeldBytes: 1_000 }, open, logger });
}

const served = (service: ReturnType<typeof serve>) => [...service.current().keys()];

test("a worker adds the shards that senders use, and divides its slots again", async () => {
  const service = serve(1);
  service.start();
  expect(limits.get(0)).toEqual({ concurrency: 100, maxHeldBytes: 1_000 });
  recorded = [4];
  inUse.add(4);
  await service.adjust();
  expect(served(service)).toEqual([0, 1, 2, 3]);
  expect(done).toEqual(["open 0", "start 0", "open 1", "start 1", "open 2", "start 2", "open 3", "start 3"]);
  expect([...limits.values()]).toEqual(Array.from({ length: 4 }, () => ({ concurrency: 25, maxHeldBytes: 250 })));
});

test("a worker closes shards only when nobody uses their number and they are empty", async () => {
  recorded = [8, 2];
  inUse = new Set([8, 2]);
  notEmpty = new Set([7]);
  const service = serve(1);
  service.start();
  await service.adjust();
  expect(served(service)).toHaveLength(8);

  inUse.delete(8);
  await service.adjust();
  expect(recorded).toEqual([8, 2]);
  notEmpty.clear();
  inUse.add(8);
  await service.adjust();
  expect(recorded).toEqual([8, 2]);
  inUse.delete(8);
  await service.adjust();
  expect(recorded).toEqual([2]);
  expect(served(service)).toHaveLength(8);

  // An event came after the record was removed.
  notEmpty.add(3);
  await service.adjust();
  expect(served(service)).toHaveLength(8);
  notEmpty.clear();
  await service.adjust();
  expect(served(service)).toEqual([0, 1]);
  for (const step of ["drain 5", "close 5"]) expect(done).toContain(step);
  expect([...limits.values()]).toEqual(Array.from({ length: 2 }, () => ({ concurrency: 50, maxHeldBytes: 500 })));
});

test("a shard whose Redis does not answer is not closed, and the next look tries again", async () => {
  recorded = [2];
  const service = serve(1);
  service.start();
  silent.add(1);
  await expect(service.adjust()).rejects.toThrow("No result within");
  expect(served(service)).toEqual([0, 1]);
  silent.clear();
  await service.adjust();
  await service.adjust();
  expect(served(service)).toEqual([0]);
});

test("each of many shards has at least one slot, and all are drained and closed at the end", async () => {
  const service = serve(256);
  service.start();
  await service.adjust();
  expect(served(service)).toHaveLength(256);
  expect(limits.get(7)).toEqual({ concurrency: 1, maxHeldBytes: 3 });
  await service.drain();
  await service.close();
  for (const step of ["drain 255", "close 255"]) expect(done).toContain(step);
});
