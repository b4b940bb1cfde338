import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { type Consumer, createConsumer } from "./consumer.ts";
import type { Delivery } from "./delivery.ts";

const text = '{"of":"damaged"}';
let prefix: string;
let redis: Redis;
let queue: Queue;
const cleanups: (() => Promise<unknown> | unknown)[] = [];
const key = (name: string) => `${prefix}:${queueName}:${name}`;

beforeEach(() => {
  prefix = uniquePrefix();
  redis = new Redis(redisUrl(), { maxRetriesPerRequest: null });
  queue = new Queue(queueName, { connection: redis, prefix });
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await redis.del(...(await redis.keys(`${prefix}:*`)), "none");
  await queue.close();
  redis.disconnect();
});

function consume(handle: (delivery: Delivery) => Promise<void>, { isStarted = true, concurrency = 1 } = {}) {
  const gone: string[] = [];
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency,
    maxHeldBytes: Number.MAX_SAFE_INTEGER,
    handle,
    recovery: { lockDurationMs: 1_000, stalledCheckIntervalMs: 200 },
    onError: () => {},
    onMissingJob: (jobId) => gone.push(jobId),
  });
  cleanups.push(() => consumer.close());
  if (isStarted) consumer.start("a database");
  return { consumer, gone };
}

async function add(...ids: string[]): Promise<void> {
  for (const jobId of ids) await queue.add("create", { of: jobId }, { ...jobOptions, jobId });
}

async function untilEmpty(): Promise<void> {
  await waitFor(
    async () =>
      expect(await queue.getJobCounts("waiting", "active", "delayed", "failed")).toEqual({
        waiting: 0,
        active: 0,
        delayed: 0,
        failed: 0,
      }),
    { timeoutMs: 20_000 },
  );
}

const damages: [what: string, damage: () => Promise<unknown>][] = [
  ...[
    ...["opts=no JSON", "opts=null", "opts=[]", 'opts="text"', "progress={", "parent={", "name="],
    ...["timestamp=soon", "delay=soon", "priority=high", "atm=many", "ats=many", "ats=99999999999999999999"],
  ].map((assignment): [string, () => Promise<unknown>] => {
    const [field = "", value = ""] = assignment.split("=", 2);
    return [assignment, () => redis.hset(key("damaged"), field, value)];
  }),
  ["no opts", () => redis.hdel(key("damaged"), "opts")],
  ["no name", () => redis.hdel(key("damaged"), "name")],
];

describe("a job that BullMQ cannot read", () => {
  test.each(damages)("is delivered with its text, and delays no other: %s", { timeout: 40_000 }, async (_, damage) => {
    await add("before", "damaged", "after");
    await damage();
    const deliveries: Delivery[] = [];
    consume(async (delivery) => void deliveries.push(delivery));
    await waitFor(() => expect(deliveries).toHaveLength(3), { timeoutMs: 20_000 });
    const damaged = deliveries.find(({ jobId }) => jobId === "damaged");
    expect(damaged).toMatchObject({ text, damage: expect.stringMatching(/^The queued job/) });
    expect(deliveries.filter((delivery) => delivery.damage === null)).toHaveLength(2);
    await untilEmpty();
  });

  test.each(damages)("delays no other in the failed set: %s", async (_, damage) => {
    await add("damaged", "other");
    const giveUp = Object.assign(new Error("given up"), { name: "UnrecoverableError" });
    const { consumer } = consume(() => Promise.reject(giveUp));
    await waitFor(async () => expect(await queue.getJobCounts("failed")).toEqual({ failed: 2 }));
    await damage();
    const swept = await sweep(consumer);
    expect(swept.map(({ jobId }) => jobId).sort()).toEqual(["damaged", "other"]);
    expect(swept.find(({ jobId }) => jobId === "damaged")).toMatchObject({ text });
    await untilEmpty();
  });

  test("is also delivered after its worker died", { timeout: 40_000 }, async () => {
    await add("damaged");
    const held: string[] = [];
    const { consumer } = consume(async ({ jobId }) => {
      held.push(jobId);
      await new Promise(() => {});
    });
    await waitFor(() => expect(held).toEqual(["damaged"]));
    await consumer.close();
    await redis.hset(key("damaged"), "stc", "many", "atm", "many");
    const deliveries: Delivery[] = [];
    consume(async (delivery) => void deliveries.push(delivery));
    await waitFor(() => expect(deliveries).toMatchObject([{ text, damage: expect.any(String) }]), {
      timeoutMs: 20_000,
    });
    await untilEmpty();
  });
});

describe("bytes that are not UTF-8 can be read unchanged", () => {
  const bytes = Buffer.from([0x7b, 0xff, 0xc3, 0x28, 0xef, 0xbf, 0xbd, 0x00, 0x7d]);

  test("while the event is handled, and after it failed", async () => {
    await add("other");
    await redis.hset(key("other"), "data", bytes);
    const read: Buffer[] = [];
    const { consumer } = consume(async (delivery) => {
      read.push(await consumer.readBytes(delivery));
      throw Object.assign(new Error("given up"), { name: "UnrecoverableError" });
    });
    await waitFor(async () => expect(await queue.getJobCounts("failed")).toEqual({ failed: 1 }));
    await consumer.sweepFailed({
      judge: async ({ delivery }) => {
        read.push(await consumer.readBytes(delivery));
        return "take out";
      },
      onFault: (_, error) => {
        throw error;
      },
    });
    expect(read).toEqual([bytes, bytes]);
  });

  test("as far as they are in the text, when the job is missing", async () => {
    const { consumer } = consume(async () => {}, { isStarted: false });
    expect(await consumer.readBytes({ jobId: "gone", text: "\uFFFD" })).toEqual(Buffer.from("\uFFFD"));
  });
});

describe("an id without a job is removed and not delivered", () => {
  const jobOf: [where: string, put: () => Promise<unknown>][] = [
    ["waits at the head", () => redis.rpush(key("wait"), "gone")],
    ["waits between others", () => redis.linsert(key("wait"), "BEFORE", "one", "gone")],
    ["is delayed", () => redis.zadd(key("delayed"), 1, "gone")],
    ["is active", () => redis.lpush(key("active"), "gone")],
    ["is not a job", () => redis.set(key("gone"), "x").then(() => redis.rpush(key("wait"), "gone"))],
  ];

  test.each(jobOf)("that %s", { timeout: 40_000 }, async (_, put) => {
    await add("one", "two", "three");
    await put();
    const delivered: string[] = [];
    consume(async ({ jobId }) => void delivered.push(jobId));
    await waitFor(() => expect(delivered.toSorted()).toEqual(["one", "three", "two"]), { timeoutMs: 20_000 });
    await untilEmpty();
    expect(delivered).not.toContain("gone");
  });

  test("and is reported", async () => {
    await redis.lpush(key("wait"), "gone");
    await add("one");
    const { gone } = consume(async () => {});
    await untilEmpty();
    expect(gone).toEqual(["gone"]);
    expect(await redis.exists(key("gone"))).toBe(0);
  });

  test("that is in the failed set", async () => {
    await redis.zadd(key("failed"), 1, "gone");
    const { consumer, gone } = consume(async () => {});
    expect(await sweep(consumer)).toEqual([]);
    expect(gone).toEqual(["gone"]);
    await untilEmpty();
  });
});

async function sweep(consumer: Consumer): Promise<Delivery[]> {
  const swept: Delivery[] = [];
  await consumer.sweepFailed({
    judge: async ({ delivery }) => {
      swept.push(delivery);
      return "take out";
    },
    onFault: (_, error) => {
      throw error;
    },
  });
  return swept;
}
