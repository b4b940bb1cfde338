import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uniquePrefix } from "@booking-events/harness";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import {
  type BackendFactory,
  createRedisBackend,
  Job,
  Queue,
  type RedisQueueBackend,
  type WorkerOptions,
} from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { JobContent } from "./event-job.ts";
import { createHeldEvents } from "./held-events.ts";
import { jobOptions } from "./job-options.ts";
import { queueName } from "./queue-name.ts";
import { dumpQueue } from "./testing/dump-queue.ts";
import { createWorkerBackend } from "./worker-backend.ts";

const lockDuration = 10_000;
let folder: string;
let server: DataServer;
let redis: Redis;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-finish-"));
  server = await startRedis({ dir: folder });
  redis = new Redis(server.url);
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/**
 * A queue with six jobs, a to f, of which a, b and c are active, with locks whose tokens are token-a, token-b and
 * token-c.
 */
async function prepare(makeBackend: (prefix: string) => BackendFactory<RedisQueueBackend>) {
  const prefix = uniquePrefix();
  const queue = new Queue(queueName, { connection: redis, prefix });
  const add = (jobId: string, options = {}) => queue.add("create", { of: jobId }, { ...jobOptions, jobId, ...options });
  for (const id of ["a", "b", "c", "d", "e", "f"]) await add(id);
  const options: WorkerOptions = { connection: redis, prefix, lockDuration };
  const backend = makeBackend(prefix)(queueName, options);
  for (const id of ["a", "b", "c"]) await backend.moveToActive(`token-${id}`);
  const key = (name: string) => `${prefix}:${queueName}:${name}`;

  /** The result: an error's message, or the next job without its times. */
  async function finish(id: string, { fetchNext = true, token = `token-${id}` } = {}): Promise<unknown> {
    const job = new Job(queue, "create", {}, jobOptions, id);
    try {
      const { result } = await backend.moveToCompleted(job, undefined, true, token, fetchNext);
      // BullMQ has two ways to report that there is none.
      const [fields, id, limitedMs, delayedUntilMs] = Array.isArray(result) && result.length > 0 ? result : noNext;
      return {
        ...{ id, isLimited: limitedMs > 0, delayedMinutes: toMinutes(delayedUntilMs) },
        ...(fields && { fields: { ...fields, data: toText(fields.data), timestamp: 0, processedOn: 0 } }),
      };
    } catch (error) {
      return (error as Error).message;
    }
  }
  return { queue, add, backend, key, prefix, finish };
}

type Prepared = Awaited<ReturnType<typeof prepare>>;
const noNext = [null, 0, 0, 0] as const;
const toText = (data: string | JobContent) => (typeof data === "string" ? data : data.text);
const toMinutes = (untilMs: number) => (untilMs > 0 ? Math.round((untilMs - Date.now()) / 60_000) : 0);
const ours = (prefix: string, maxBytes = Number.MAX_SAFE_INTEGER) =>
  createWorkerBackend({
    redis,
    prefix,
    lockDurationMs: lockDuration,
    held: createHeldEvents({ maxBytes }),
    stalled: { maxStalledCount: 1, stalledCheckIntervalMs: 1, lockDurationMs: lockDuration },
  });
const theirs = () => createRedisBackend;
const drainWait = async ({ finish }: Prepared) => [await finish("a"), await finish("b"), await finish("c")];
const finishTogether = ({ finish }: Prepared) => Promise.all([finish("a"), finish("b"), finish("c")]);

const situations: [name: string, act: (prepared: Prepared) => Promise<unknown>][] = [
  ["the next job is fetched", ({ finish }) => finish("a")],
  ["no next job is requested", ({ finish }) => finish("a", { fetchNext: false })],
  ["one after the other", drainWait],
  ["several together", finishTogether],
  [
    "several together, and too few wait",
    async (prepared) => [
      await drainWait(prepared),
      await Promise.all([prepared.finish("d", { token: "token-a" }), prepared.finish("e", { token: "token-b" })]),
    ],
  ],
  [
    "several together, and a delayed one is due",
    async (prepared) => {
      await prepared.add("soon", { delay: 1 });
      await new Promise((resolve) => setTimeout(resolve, 20));
      return finishTogether(prepared);
    },
  ],
  [
    "several together, and all that wait have a priority",
    async (prepared) => {
      await drainWait(prepared);
      for (const id of ["urgent", "urgent-too"]) await prepared.add(id, { priority: 1 });
      return Promise.all([
        ...[prepared.finish("d", { token: "token-a" }), prepared.finish("e", { token: "token-b" })],
        prepared.finish("f", { token: "token-c" }),
      ]);
    },
  ],
  [
    "several together, and one is another worker's",
    ({ finish }) => Promise.all([finish("a"), finish("b", { token: "another" }), finish("c")]),
  ],
  ["nothing waits anymore", async (prepared) => [await drainWait(prepared), await finishNext(prepared)]],
  [
    "only a delayed one is left",
    async (prepared) => {
      await prepared.add("later", { delay: 3_600_000 });
      return [await drainWait(prepared), await finishNext(prepared)];
    },
  ],
  [
    "a delayed one is due",
    async (prepared) => {
      await prepared.add("soon", { delay: 1 });
      await new Promise((resolve) => setTimeout(resolve, 20));
      return [await drainWait(prepared), await finishNext(prepared)];
    },
  ],
  [
    "one has a priority",
    async (prepared) => {
      await prepared.add("urgent", { priority: 1 });
      return [await drainWait(prepared), await finishNext(prepared)];
    },
  ],
  [
    "the queue is paused",
    async ({ queue, finish }) => {
      await queue.pause();
      return finish("a");
    },
  ],
  [
    "all workers together may have no more",
    async ({ queue, finish }) => {
      await queue.setGlobalConcurrency(2);
      return [await finish("a"), await finish("b"), await finish("c")];
    },
  ],
  [
    "all workers together may take one a minute",
    async ({ queue, finish }) => {
      await queue.setGlobalRateLimit(1, 60_000);
      return [await finish("a"), await finish("b")];
    },
  ],
  [
    "it was seen without a sign of life once",
    async ({ key, finish }) => {
      await redis.sadd(key("stalled"), "a", "b");
      return finish("a");
    },
  ],
  [
    "it has logs",
    async ({ queue, finish }) => {
      await queue.addJobLog("a", "a line");
      return finish("a");
    },
  ],
  [
    "its lock has expired",
    async ({ key, finish }) => {
      await redis.del(key("a:lock"));
      return finish("a");
    },
  ],
  ["another worker has its lock", ({ finish }) => finish("a", { token: "another" })],
  [
    "it is not active any more",
    async ({ key, finish }) => {
      await redis.lrem(key("active"), 1, "a");
      return finish("a");
    },
  ],
  ["it is missing", ({ finish }) => finish("gone")],
];

/** The jobs fetched after a, b and c have their locks. */
async function finishNext({ finish }: Prepared): Promise<unknown> {
  return [
    await finish("d", { token: "token-a" }),
    await finish("e", { token: "token-b" }),
    await finish("f", { token: "token-c" }),
  ];
}

describe("finishing an event leaves Redis in the same state as BullMQ would", () => {
  test.each(situations)("%s", async (_, act) => {
    const results = [];
    for (const makeBackend of [ours, theirs]) {
      const prepared = await prepare(makeBackend);
      const answer = await act(prepared);
      results.push({ answer, left: await dumpQueue(redis, prepared.prefix) });
      await prepared.queue.close();
    }
    const [byUs, byThem] = results;
    expect(byUs).toEqual(byThem);
  });
});

describe("events that finish together", () => {
  test("are removed by one call, and each gets its own answer", async () => {
    const { queue, finish, prefix } = await prepare(ours);
    const sent = vi.spyOn(redis, "sendCommand");
    const answers = await Promise.all([
      finish("a"),
      finish("b", { token: "another" }),
      finish("c", { fetchNext: false }),
    ]);
    const calls = sent.mock.calls.filter(([{ name }]) => name === "evalsha" || name === "eval");
    sent.mockRestore();
    expect(calls.length).toBeLessThanOrEqual(2); // The second one when Redis didn't know the script yet.
    expect(answers).toEqual([
      expect.objectContaining({ id: "d", fields: expect.objectContaining({ data: '{"of":"d"}', attemptsStarted: 1 }) }),
      "Lock mismatch for job b. Cmd moveToFinished from active",
      { id: 0, isLimited: false, delayedMinutes: 0 },
    ]);
    expect(await dumpQueue(redis, prefix)).toMatchObject({ ":events:active": ["d", "b"], ":events:wait": ["f", "e"] });
    await queue.close();
  });

  test("are left to BullMQ if they have properties that events never have", async () => {
    const { queue, backend, prefix } = await prepare(ours);
    const job = new Job(queue, "create", {}, { ...jobOptions, removeOnComplete: false }, "a");
    await backend.moveToCompleted(job, "kept", false, "token-a", false);
    expect(await redis.zrange(`${prefix}:${queueName}:completed`, "0", "-1")).toEqual(["a"]);
    await queue.close();
  });
});
