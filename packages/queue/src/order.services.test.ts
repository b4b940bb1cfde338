import { spawn } from "node:child_process";
import { once } from "node:events";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { type BackendFactory, createRedisBackend, Queue, type RedisQueueBackend, type WorkerOptions } from "bullmq";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { jobOptions } from "./events/job-options.ts";
import { queueName } from "./events/queue-name.ts";
import { createConsumer } from "./take/consumer.ts";
import { type Delivery, ReleaseDelivery } from "./take/delivery.ts";
import { HeldEvents } from "./take/held-events.ts";
import { createEventReleaser } from "./take/release-events.ts";
import { createWorkerBackend } from "./take/worker-backend.ts";
import { dumpQueue } from "./testing/dump-queue.ts";

const maxHeldBytes = Number.MAX_SAFE_INTEGER;
const recovery = { lockDurationMs: 2_000, stalledCheckIntervalMs: 200 };
const lockDurationMs = 10_000;
const maxStalledCount = 2;

let prefix: string;
let redis: Redis;
let queue: Queue;
const cleanups: (() => Promise<unknown> | unknown)[] = [];

beforeEach(() => {
  useNewQueue();
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const key = (name: string) => `${prefix}:${queueName}:${name}`;

function useNewQueue(): void {
  prefix = uniquePrefix();
  redis = new Redis(redisUrl(), { maxRetriesPerRequest: null });
  queue = new Queue(queueName, { connection: redis, prefix });
  const [itsRedis, itsQueue] = [redis, queue];
  cleanups.push(async () => {
    await itsQueue.obliterate({ force: true });
    await itsQueue.close();
    itsRedis.disconnect();
  });
}

function consume(handle: (delivery: Delivery) => Promise<void>, options: { concurrency?: number } = {}) {
  const { concurrency = 100 } = options;
  const consumer = createConsumer({
    redisServers: redisUrl(),
    prefix,
    concurrency,
    maxHeldBytes,
    recovery,
    handle,
    onError: () => {},
  });
  cleanups.push(() => consumer.close());
  consumer.start("a database");
  return consumer;
}

async function add(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `event-${index}`);
  await queue.addBulk(ids.map((jobId) => ({ name: "create", data: {}, opts: { ...jobOptions, jobId } })));
  return ids;
}

describe("the events of a worker that ends are delivered to the next one in order", () => {
  /** The ids of the waiting events, in the order in which they will be fetched. */
  async function nextOnes(): Promise<string[]> {
    return (await redis.lrange(key("wait"), 0, -1)).reverse();
  }

  test("when it is told to stop while it is busy", async () => {
    const ids = await add(4_000);
    const stopping = new AbortController();
    const applied: string[] = [];
    let held = 0;
    const consumer = consume(
      async ({ jobId }) => {
        if (applied.length < 500) return void applied.push(jobId);
        held += 1;
        if (!stopping.signal.aborted)
          await new Promise((resolve) => stopping.signal.addEventListener("abort", resolve));
        throw new ReleaseDelivery("stopping");
      },
      { concurrency: 3_000 },
    );
    // It is still fetching.
    await waitFor(() => expect(held).toBeGreaterThan(2_000), { timeoutMs: 30_000, intervalMs: 1 });
    stopping.abort();
    await consumer.drain();
    await consumer.close();
    expect(await queue.getJobCounts("active", "delayed", "failed")).toEqual({ active: 0, delayed: 0, failed: 0 });
    expect(await nextOnes()).toEqual(ids.filter((id) => !applied.includes(id)));
  });

  test("when some of its events take longer than others", async () => {
    const ids = await add(20);
    const { promise: stop, resolve: stopNow } = Promise.withResolvers<void>();
    const held: string[] = [];
    const consumer = consume(async ({ jobId }) => {
      held.push(jobId);
      await stop;
      for (let turns = 0; turns < ids.indexOf(jobId) % 7; turns += 1) await new Promise(setImmediate);
      throw new ReleaseDelivery("stopping");
    });
    await waitFor(() => expect(held).toHaveLength(20));
    stopNow();
    await consumer.drain();
    expect(await nextOnes()).toEqual(ids);
  });

  test("when some of its events never end: the others are still released", async () => {
    const ids = await add(20);
    const { promise: stop, resolve: stopNow } = Promise.withResolvers<void>();
    const held: string[] = [];
    const consumer = consume(async ({ jobId }) => {
      held.push(jobId);
      if (jobId === "event-3") await new Promise(() => {});
      await stop;
      throw new ReleaseDelivery("stopping");
    });
    await waitFor(() => expect(held).toHaveLength(20));
    stopNow();
    void consumer.drain();
    await waitFor(async () => expect(await nextOnes()).toEqual(ids.filter((id) => id !== "event-3")));
  });

  test("when it is killed", async () => {
    const ids = await add(3_000);
    const worker = spawn(
      process.execPath,
      [
        ...["--conditions=@booking-events/source", "--disable-warning=ExperimentalWarning"],
        ...[`${import.meta.dirname}/testing/hold-until-killed.ts`, redisUrl(), prefix, "3000"],
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    cleanups.push(() => worker.kill("SIGKILL"));
    let output = "";
    worker.stdout.on("data", (chunk) => {
      output += chunk;
    });
    await waitFor(() => expect(output).toContain("\n3000\n"), { timeoutMs: 30_000 });
    // Some locks have been renewed by now, and expire together with those of later events.
    await waitFor(async () => expect(await redis.pttl(`${prefix}:${queueName}:event-0:lock`)).toBeLessThan(1_700));
    worker.kill("SIGKILL");
    await once(worker, "exit");
    // The next worker searches for them, and fetches none.
    await queue.pause();
    consume(async () => {});
    await waitFor(async () => expect(await redis.llen(key("active"))).toBe(0), { timeoutMs: 30_000 });
    expect(await nextOnes()).toEqual(ids);
  });
});

type Backend = RedisQueueBackend;

/** Eight jobs, of which a to e are active, with locks whose tokens are token-a to token-e. */
async function prepare(makeBackend: () => BackendFactory<Backend>): Promise<Backend> {
  useNewQueue();
  for (const jobId of "abcdefgh") await queue.add("create", { of: jobId }, { ...jobOptions, jobId });
  const options: WorkerOptions = { connection: redis, prefix, lockDuration: lockDurationMs };
  for (const id of "abcde") await createRedisBackend(queueName, options).moveToActive(`token-${id}`);
  return makeBackend()(queueName, { ...options, maxStalledCount, stalledInterval: 600_000 } as WorkerOptions);
}

const ours = () =>
  createWorkerBackend({
    redis,
    prefix,
    lockDurationMs,
    database: () => "a database",
    held: new HeldEvents({ concurrency: 1, maxHeldBytes }),
    begin: () => {},
    maxStalledCount,
    stalledCheckIntervalMs: 600_000,
  });
const theirs = () => createRedisBackend;

const situations: [name: string, set: () => Promise<unknown>][] = [
  ["as usual", async () => {}],
  ["the queue is paused", () => queue.pause()],
  ["there is no marker", () => redis.del(key("marker"))],
  ["a lock has expired", () => redis.del(key("c:lock"))],
  ["an operator has removed one", () => redis.del(key("c"), key("c:lock"))],
  ["they are marked as stalled", () => redis.sadd(key("stalled"), "a", "b", "c")],
];

const anotherHasLock: (typeof situations)[number] = [
  "another worker has a lock",
  () => redis.set(key("c:lock"), "another", "PX", lockDurationMs),
];

describe("releasing events leaves Redis in the same state as BullMQ releasing the newest first", () => {
  test.each([...situations, anotherHasLock])("%s", async (_, set) => {
    const results = [];
    for (const isOurs of [true, false]) {
      const backend = await prepare(theirs);
      await set();
      const ids = ["a", "b", "c", "d"];
      const releaseEvent = createEventReleaser(redis, prefix);
      if (isOurs) await Promise.all(ids.map((jobId) => releaseEvent({ jobId, token: `token-${jobId}` })));
      else for (const id of ids.reverse()) await backend.moveJobFromActiveToWait(id, `token-${id}`).catch(() => {});
      results.push(await dumpQueue(redis, prefix));
    }
    const [byUs, byThem] = results;
    expect(byUs).toEqual(byThem);
  });

  test("even with more events than one call may release", async () => {
    const ids = await add(1_234);
    const backend = createRedisBackend(queueName, { connection: redis, prefix, lockDuration: lockDurationMs } as never);
    await Promise.all(ids.map((id) => backend.moveToActive(id)));
    const releaseEvent = createEventReleaser(redis, prefix);
    await Promise.all(ids.map((jobId) => releaseEvent({ jobId, token: jobId })));
    expect(await redis.lrange(key("wait"), 0, -1)).toEqual(ids.toReversed());
    expect(await redis.exists(...ids.map((id) => key(`${id}:lock`)))).toBe(0);
  });
});

describe("stalled events are put back as BullMQ would do it, but in their order", () => {
  const stalledSituations: typeof situations = [
    ...situations,
    ["one is no longer active", () => redis.lrem(key("active"), 1, "c")],
    ["one has reached the maximum stalled count", () => redis.hset(key("b"), "stc", maxStalledCount)],
    ["another process has just checked", () => redis.set(key("stalled-check"), "1", "PX", lockDurationMs)],
    ["nothing was marked", () => redis.del(key("stalled"))],
  ];

  test.each(stalledSituations)("%s", async (_, set) => {
    const results = [];
    for (const makeBackend of [ours, theirs]) {
      const backend = await prepare(makeBackend);
      await redis.sadd(key("stalled"), "b", "a", "c", "unknown");
      await redis.del(key("a:lock"), key("b:lock"), key("c:lock"));
      await set();
      const moved = (await backend.moveStalledJobsToWait()) as string[];
      const { [":events:wait"]: wait = [], ...left } = await dumpQueue(redis, prefix);
      const ids = wait as string[];
      // BullMQ puts them back in the order of a hash table.
      results.push({ moved: moved.toSorted(), wait: ids.filter((id) => !moved.includes(id)), count: ids.length, left });
      if (makeBackend === ours && moved.length > 0)
        expect(ids.slice(-moved.length)).toEqual(moved.toSorted().reverse());
    }
    const [byUs, byThem] = results;
    expect(withoutTimes(byUs)).toEqual(withoutTimes(byThem));
  });

  /** The last check is at another time. */
  function withoutTimes<Result extends { left: object } | undefined>(result: Result): unknown {
    const kept = Object.entries(result?.left ?? {}).filter(([name]) => !name.endsWith(":stalled-check"));
    return { ...result, left: Object.fromEntries(kept) };
  }

  test("and all together: none while the lock of another is about to expire", async () => {
    const backend = await prepare(ours);
    await redis.sadd(key("stalled"), "a", "b", "c", "d");
    await redis.del(key("a:lock"), key("c:lock"), key("d:lock"));
    expect(await backend.moveStalledJobsToWait()).toEqual([]);
    expect(await redis.smembers(key("stalled"))).toHaveLength(4);
    await redis.del(key("b:lock"), key("stalled-check"));
    expect(await backend.moveStalledJobsToWait()).toEqual(["d", "c", "b", "a"]);
    expect(await redis.lrange(key("wait"), -4, -1)).toEqual(["d", "c", "b", "a"]);
    expect(await redis.smembers(key("stalled"))).toEqual(["e"]);
  });

  test("and they do not wait for an event of a live worker", async () => {
    const backend = await prepare(ours);
    await redis.sadd(key("stalled"), "a", "b", "c");
    await redis.del(key("a:lock"), key("c:lock"));
    await backend.extendLocks(["b"], ["token-b"], lockDurationMs);
    expect(await backend.moveStalledJobsToWait()).toEqual(["c", "a"]);
  });

  test("and they do not wait until Redis' clock has caught up after it was set back", async () => {
    const backend = await prepare(ours);
    await redis.sadd(key("stalled"), "a", "b", "c");
    const stepMs = 3_600_000;
    for (const id of ["a", "b", "c"]) await redis.pexpire(key(`${id}:lock`), stepMs + lockDurationMs);
    await redis.set(key("stalled-check"), "1", "PX", stepMs);
    // Live workers have an interval to renew their locks.
    expect(await backend.moveStalledJobsToWait()).toEqual([]);
    await backend.extendLocks(["b"], ["token-b"], lockDurationMs);
    await redis.del(key("stalled-check"));
    expect(await backend.moveStalledJobsToWait()).toEqual(["c", "a"]);
  });

  test("and BullMQ's event stream is kept short", async () => {
    const backend = await prepare(ours);
    await redis.hset(key("meta"), "opts.maxLenEvents", 10);
    for (let times = 0; times < 500; times += 1) await redis.xadd(key("events"), "*", "event", "x");
    await backend.moveStalledJobsToWait();
    expect(await redis.xlen(key("events"))).toBeLessThan(200);
  });
});
