import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import { testSuffix } from "../events/event-subject.ts";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { groupQueuedEvents } from "./group-queued-events.ts";
import { listQueuedEvents } from "./list-queued-events.ts";

const redis = new Redis(redisUrl());
let prefix: string;
let queue: Queue;

beforeEach(() => {
  prefix = uniquePrefix();
  queue = new Queue(queueName, { connection: redis, prefix });
});

afterAll(() => redis.disconnect());

async function add(ids: string[], { partner = "acme", code = "", delay = 0, end = "" } = {}): Promise<void> {
  await queue.addBulk(
    ids.map((jobId) => ({ name: "create", data: {}, opts: { ...jobOptions, jobId, ...(delay > 0 ? { delay } : {}) } })),
  );
  for (const id of ids) {
    const failure = code === "" ? {} : { failedReason: `${code}: PostgreSQL refused to apply the event.` };
    await redis.hset(`${prefix}:events:${id}`, { subject: `${partner} ${id}${end}`, ...failure });
  }
}

const group = (partner?: string, isTest = false) =>
  groupQueuedEvents({ redisServers: redisUrl(), prefix, shardCount: 1, partner, isTest });
const hour = 3_600_000;

test("events are counted by their state, and delayed ones by why their last attempt failed", async () => {
  const ids = (start: string, count: number) => Array.from({ length: count }, (_, index) => `${start}-${index}`);
  const before = Date.now();
  await add(ids("refused", 1_500), { code: "23514", delay: 2 * hour });
  await add(ids("sooner", 1), { code: "23514", delay: hour });
  await add(ids("other", 3), { code: "ECONNREFUSED", delay: hour, partner: "globex" });
  await add(ids("waiting", 4));
  await add(ids("of a test", 2), { end: testSuffix });
  await add(ids("delayed of a test", 1), { end: testSuffix, code: "23514", delay: hour });
  // An id without a job, and something that is no job.
  await redis.lpush(`${prefix}:${queueName}:wait`, "missing");
  await redis.zadd(`${prefix}:${queueName}:delayed`, (before + 3 * hour) * 0x1000, "wrong");
  await redis.set(`${prefix}:${queueName}:wrong`, "text");

  const { groups, total, looked } = await group();
  expect({ total, looked }).toEqual({ total: 1_513, looked: 1_513 });
  expect(groups).toHaveLength(4);
  expect(groups).toEqual(
    expect.arrayContaining([
      { state: "delayed", code: "23514", count: 1_501, nextAttemptAt: expect.any(Date) },
      { state: "delayed", code: "ECONNREFUSED", count: 3, nextAttemptAt: expect.any(Date) },
      { state: "delayed", code: null, count: 1, nextAttemptAt: expect.any(Date) },
      { state: "waiting", code: null, count: 5, nextAttemptAt: null },
    ]),
  );
  const next = groups.find(({ code }) => code === "23514")?.nextAttemptAt?.getTime() ?? 0;
  expect(next).toBeGreaterThanOrEqual(before + hour);
  expect(next).toBeLessThan(before + 2 * hour);

  expect((await group(undefined, true)).groups).toEqual([
    { state: "delayed", code: "23514", count: 1, nextAttemptAt: expect.any(Date) },
    { state: "waiting", code: null, count: 2, nextAttemptAt: null },
  ]);
  const ofPartner = await group("globex");
  expect(ofPartner.groups).toEqual([
    { state: "delayed", code: "ECONNREFUSED", count: 3, nextAttemptAt: expect.any(Date) },
  ]);
});

test("those of one group are listed", async () => {
  await add(["a", "b"], { code: "23514", delay: hour });
  await add(["c"], { code: "235", delay: hour });
  await add(["d"]);
  const list = async (more: { state: "delayed" | "waiting"; code?: string }) => {
    const { events } = await listQueuedEvents(
      { redisServers: redisUrl(), prefix, shardCount: 1, limit: 10, ...more },
      (event) => [event],
    );
    return events.map(({ eventId }) => eventId).sort();
  };
  expect(await list({ state: "delayed", code: "23514" })).toEqual(["a", "b"]);
  expect(await list({ state: "delayed" })).toEqual(["a", "b", "c"]);
  expect(await list({ state: "waiting" })).toEqual(["d"]);
});

test("those of test partners are listed apart, and hide no others", async () => {
  await add(["t1", "t2", "t3"], { end: testSuffix });
  await add(["real"]);
  const list = async (isTest: boolean) => {
    const wanted = { redisServers: redisUrl(), prefix, shardCount: 1, limit: 2, isTest };
    return (await listQueuedEvents(wanted, ({ eventId }) => [eventId])).events;
  };
  expect(await list(false)).toEqual(["real"]);
  expect(await list(true)).toEqual(["t1", "t2"]);
});

test("of more events than are read at once, the oldest come first, and only what is wanted is kept", async () => {
  const all = Array.from({ length: 250 }, (_, index) => `id-${String(index).padStart(3, "0")}`);
  await add(all);
  const wanted = { redisServers: redisUrl(), prefix, shardCount: 1, limit: 230 };
  const { events } = await listQueuedEvents(wanted, ({ eventId }) => (eventId.endsWith("7") ? [eventId] : []));
  expect(events).toEqual(all.slice(0, 230).filter((id) => id.endsWith("7")));
});
