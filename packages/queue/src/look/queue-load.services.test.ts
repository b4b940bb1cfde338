import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { queueName } from "../events/queue-name.ts";
import { measureQueueLoad } from "./queue-load.ts";

let folder: string;
let server: DataServer;
let redis: Redis;
let queue: Queue;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-queue-load-"));
  server = await startRedis({ dir: folder });
  redis = new Redis(server.url);
  queue = new Queue(queueName, { connection: redis, prefix: "load" });
});

afterAll(async () => {
  await queue?.close();
  redis?.disconnect();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("the backlog counts all waiting events: for a worker, for their next attempt, or with a priority", async () => {
  expect((await measureQueueLoad(redis, "load")).backlog).toBe(0);
  await queue.addBulk([
    { name: "waits", data: {} },
    { name: "waits", data: {} },
    { name: "waits for its next attempt", data: {}, opts: { delay: 3_600_000 } },
    { name: "has a priority", data: {}, opts: { priority: 1 } },
  ]);
  expect((await measureQueueLoad(redis, "load")).backlog).toBe(4);
});

test("memory is a share of maxmemory, and 0 without that limit", async () => {
  await redis.config("SET", "maxmemory", "0");
  expect((await measureQueueLoad(redis, "load")).memoryShare).toBe(0);
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  await redis.config("SET", "maxmemory", String(used * 4));
  const { memoryShare } = await measureQueueLoad(redis, "load");
  expect(memoryShare).toBeGreaterThan(0.2);
  expect(memoryShare).toBeLessThan(0.3);
});
