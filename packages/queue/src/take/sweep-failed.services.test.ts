import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { type Consumer, createConsumer } from "./consumer.ts";
import type { Delivery } from "./delivery.ts";
import type { GivenUpEvent, Verdict } from "./sweep-failed.ts";

let prefix: string;
let redis: Redis;
let queue: Queue;
const consumers: Consumer[] = [];
const key = (name: string) => `${prefix}:${queueName}:${name}`;

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

function makeConsumer(handle: (delivery: Delivery) => Promise<void> = async () => {}): Consumer {
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency: 5,
    maxHeldBytes: Number.MAX_SAFE_INTEGER,
    handle,
    onError: () => {},
  });
  consumers.push(consumer);
  return consumer;
}

/** Jobs that BullMQ has failed because they stalled too often. */
async function addStalledOut(...ids: string[]): Promise<void> {
  for (const jobId of ids) {
    await queue.add("create", { of: jobId }, { ...jobOptions, jobId });
    await redis.hset(key(jobId), "defa", "job stalled more than allowable limit", "stc", "26");
  }
  const consumer = makeConsumer();
  consumer.start("a database");
  await waitFor(async () => expect(await queue.getJobCounts("failed")).toEqual({ failed: ids.length }));
  await consumer.close();
}

type Judge = (event: GivenUpEvent) => Promise<Verdict>;

async function sweep(judge: Judge, consumer = makeConsumer()): Promise<unknown[]> {
  const faults: unknown[] = [];
  await consumer.sweepFailed({ judge, onFault: (_, error) => faults.push(error) > 0 });
  return faults;
}

test("an event that cannot be handled does not delay the others", async () => {
  const ids = Array.from({ length: 250 }, (_, index) => `event-${index}`);
  await addStalledOut(...ids);
  const bad = new Set(ids.filter((_, index) => index % 3 === 0));
  const faults = await sweep(async ({ delivery }) => {
    if (bad.has(delivery.jobId)) throw new Error("not this one");
    return "take out";
  });
  expect(faults).toHaveLength(bad.size);
  expect(new Set(await redis.zrange(key("failed"), "0", "-1"))).toEqual(bad);
});

test("an event that is put back is delivered normally and does not fail again immediately", async () => {
  await addStalledOut("event");
  await sweep(async ({ reason, delivery }) => {
    expect([reason, delivery.attempt]).toEqual(["job stalled more than allowable limit", 1]);
    return "put back";
  });
  const deliveries: Delivery[] = [];
  makeConsumer(async (delivery) => void deliveries.push(delivery)).start("a database");
  await waitFor(() => expect(deliveries).toMatchObject([{ jobId: "event", text: '{"of":"event"}', attempt: 1 }]));
  await waitFor(async () => expect(await redis.exists(key("event"))).toBe(0));
});

test("two processes that sweep at the same time never have the same event", async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `event-${index}`);
  await addStalledOut(...ids);
  const judged: string[] = [];
  const judge: Judge = async ({ delivery }) => {
    judged.push(delivery.jobId);
    await new Promise((resolve) => setTimeout(resolve, 5));
    return "take out";
  };
  await Promise.all([sweep(judge), sweep(judge), sweep(judge)]);
  expect(judged.toSorted()).toEqual(ids.toSorted());
});

test("an event that was replayed while it was being judged stays in the queue", async () => {
  await addStalledOut("event");
  await sweep(async ({ delivery }) => {
    // Another process has removed it, and an operator has put it back.
    await redis.zrem(key("failed"), delivery.jobId);
    await redis.del(key("event"), key("event:lock"));
    await queue.add("replay", { of: "event" }, { ...jobOptions, jobId: "event" });
    return "take out";
  });
  expect(await queue.getJobCounts("waiting")).toEqual({ waiting: 1 });
  expect(await redis.hget(key("event"), "name")).toBe("replay");
});

test("a trial that does not end counts as a death, and one that ends or fails does not", async () => {
  await addStalledOut("event");
  const seen: number[] = [];
  const tryIt =
    (work: () => Promise<void>): Judge =>
    async ({ deaths, runTrial }) => {
      seen.push(deaths);
      await runTrial(work);
      throw new Error("Let it stay.");
    };
  await sweep(tryIt(async () => {}));
  await sweep(tryIt(() => Promise.reject(new Error("a mistake"))));
  for (let deaths = 0; deaths < 2; deaths += 1) {
    const { promise: isTried, resolve } = Promise.withResolvers<void>();
    const dying = makeConsumer();
    void sweep(
      tryIt(() => {
        resolve();
        return new Promise(() => {});
      }),
      dying,
    );
    await isTried;
    await dying.close();
    // Until the claim expires, no other process touches it.
    await sweep(() => Promise.reject(new Error("This one has no claim.")));
    await redis.del(key("event:lock"));
  }
  await sweep(async ({ deaths }) => {
    seen.push(deaths);
    return "take out";
  });
  expect(seen).toEqual([0, 0, 0, 1, 2]);
});

test("a trial does not begin when another process may have begun one", async () => {
  await addStalledOut("event");
  let tried = 0;
  const faults = await sweep(async ({ runTrial }) => {
    await redis.set(key("event:lock"), "another's");
    await runTrial(async () => {
      tried += 1;
    });
    return "take out";
  });
  expect(faults).toEqual([]);
  expect(await queue.getJobCounts("failed")).toEqual({ failed: 1 });
  expect(tried).toBe(0);
  expect(await redis.get(key("event:lock"))).toBe("another's");
});
