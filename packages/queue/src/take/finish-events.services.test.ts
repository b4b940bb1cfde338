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
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { dumpQueue } from "../testing/dump-queue.ts";
import { HeldEvents } from "./held-events.ts";
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
  for (const id of ["a", "b", "c"]) await createRedisBackend(queueName, options).moveToActive(`token-${id}`);
  const backend = makeBackend(prefix)(queueName, options);
  const key = (name: string) => `${prefix}:${queueName}:${name}`;

  /** @returns an error's message, or nothing */
  async function finish(id: string, { token = `token-${id}` } = {}): Promise<string | undefined> {
    const job = new Job(queue, "create", {}, jobOptions, id);
    try {
      await backend.moveToCompleted(job, undefined, true, token, false);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }
  return { queue, add, backend, key, prefix, finish };
}

type Prepared = Awaited<ReturnType<typeof prepare>>;
const ours = (prefix: string) =>
  createWorkerBackend({
    redis,
    prefix,
    lockDurationMs: lockDuration,
    database: () => "a database",
    held: new HeldEvents({ concurrency: 1, maxHeldBytes: 1 }),
    begin: () => {},
    maxStalledCount: 1,
    stalledCheckIntervalMs: 1,
  });
const theirs = () => createRedisBackend;
const finishAll = async ({ finish }: Prepared) => [await finish("a"), await finish("b"), await finish("c")];
const finishTogether = ({ finish }: Prepared) => Promise.all([finish("a"), finish("b"), finish("c")]);

const situations: [name: string, act: (prepared: Prepared) => Promise<unknown>][] = [
  ["one", ({ finish }) => finish("a")],
  ["one after the other", finishAll],
  ["several together", finishTogether],
  [
    "several together, and one is another worker's",
    ({ finish }) => Promise.all([finish("a"), finish("b", { token: "another" }), finish("c")]),
  ],
  [
    "a delayed one is due",
    async (prepared) => {
      await prepared.add("soon", { delay: 1 });
      return finishAll(prepared);
    },
  ],
  [
    "one has a priority",
    async (prepared) => {
      await prepared.add("urgent", { priority: 1 });
      return finishAll(prepared);
    },
  ],
  [
    "the queue is paused",
    async (prepared) => {
      await prepared.queue.pause();
      return finishAll(prepared);
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
    const answers = await Promise.all([finish("a"), finish("b", { token: "another" }), finish("c")]);
    const calls = sent.mock.calls.filter(([{ name }]) => name === "evalsha" || name === "eval");
    sent.mockRestore();
    expect(calls.length).toBeLessThanOrEqual(2); // The second one when Redis didn't know the script yet.
    expect(answers).toEqual([undefined, "Lock mismatch for job b. Cmd moveToFinished from active", undefined]);
    expect(await dumpQueue(redis, prefix)).toMatchObject({ ":events:active": ["b"] });
    await queue.close();
  });
});
