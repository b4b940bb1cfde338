import { join } from "node:path";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { queueName } from "@booking-events/queue";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postOnce } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-shedding-tests-0123456789";
const shared = shareSurroundings(secret);
const { environment } = shared;
let redis: DataServer;
let operator: Redis;

beforeAll(async () => {
  redis = await startRedis({ dir: join(shared.folder, "redis") });
  operator = new Redis(redis.url);
  environment["REDIS_URL"] = redis.url;
});

afterAll(async () => {
  operator?.disconnect();
  await redis?.stop();
});

let posted = 0;
async function post(ingest: RunningApp): Promise<Response> {
  posted += 1;
  return postOnce(ingest, { secret, reference: `TRIP-${posted}`, fields: { filling: "x".repeat(20_000) } });
}

/** @returns how many events were accepted until the first was refused */
async function fill(ingest: RunningApp): Promise<number> {
  for (let accepted = 0; ; accepted += 1) {
    const response = await post(ingest);
    await response.body?.cancel();
    if (response.status === 200) continue;
    expect(response.status).toBe(503);
    expect(response.headers.get("Retry-After")).toBe("5");
    return accepted;
  }
}

function countWaiting(): Promise<number> {
  return operator.llen(`${environment["QUEUE_PREFIX"]}:${queueName}:wait`);
}

async function isShedding(ingest: RunningApp): Promise<boolean> {
  const metrics = await (await fetch(`${ingest.adminUrl}/metrics`)).text();
  return /^ingest_shedding\{.*measure="memoryHighWater".*\} 1$/m.test(metrics);
}

test("a Redis that fills up never becomes full: 503 in time, the workers drain it, 200 again", async () => {
  const [, used] = /used_memory:(\d+)/.exec(await operator.info("memory")) ?? [];
  await operator.config("SET", "maxmemory", String(Number(used) + 8_000_000));
  const ingest = await shared.start("ingest");
  const accepted = await fill(ingest);
  expect(accepted).toBeGreaterThan(100);
  const { status, body } = await ingest.readiness();
  expect({ status, body }).toMatchObject({
    status: 200,
    body: { warnings: [expect.stringContaining("REDIS_MEMORY_HIGH_WATER")] },
  });
  expect(await isShedding(ingest)).toBe(true);
  // There is room left: to drain the queue, a worker needs memory of Redis.
  expect(ingest.output()).not.toContain("OOM");

  expect(await countWaiting()).toBe(accepted);

  await shared.start("worker");
  await waitFor(
    async () =>
      expect((await shared.pool.query("select count(*)::int as n from bookings")).rows).toEqual([{ n: accepted }]),
    { timeoutMs: 60_000 },
  );
  expect(await countWaiting()).toBe(0);
  await waitFor(async () => expect((await post(ingest)).status).toBe(200));
  expect((await ingest.readiness()).body).toEqual({ ready: true });
  expect(await isShedding(ingest)).toBe(false);
  expect(await ingest.stop("SIGTERM")).toBe(0);
  const messages = ingest.logLines().filter(({ measure }) => measure === "memoryHighWater");
  expect(messages.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    "warn: overloaded: events are refused",
    "info: no longer overloaded by this measure",
  ]);
});

test("a backlog over MAX_BACKLOG: 503 until the workers have drained it", async () => {
  environment["QUEUE_PREFIX"] = uniquePrefix();
  await operator.config("SET", "maxmemory", "0");
  const ingest = await shared.start("ingest", { environment: { MAX_BACKLOG: "20" } });
  expect(await fill(ingest)).toBeGreaterThan(20);
  await shared.start("worker");
  await waitFor(async () => expect((await post(ingest)).status).toBe(200), { timeoutMs: 30_000 });
});
