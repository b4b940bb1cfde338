import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { createRedisBackend, type JobJson, Queue, type RedisQueueBackend, type WorkerOptions } from "bullmq";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addNumberedEvents } from "../add/add-numbered-events.ts";
import type { JobContent } from "../events/event-job.ts";
import { jobOptions } from "../events/job-options.ts";
import { queueName } from "../events/queue-name.ts";
import { dumpQueue } from "../testing/dump-queue.ts";
import { createEventFetcher } from "./fetch-events.ts";
import { HeldEvents, type HoldLimits } from "./held-events.ts";
import { type BeginJob, createWorkerBackend } from "./worker-backend.ts";

const lockDuration = 10_000;
const token = "token";
const unlimited: HoldLimits = { concurrency: 1_000, maxHeldBytes: Number.MAX_SAFE_INTEGER };
let redis: Redis;
let prefix: string;
let queue: Queue;

beforeEach(useNewQueue);

afterEach(removeQueue);

function useNewQueue(): void {
  prefix = uniquePrefix();
  redis = new Redis(redisUrl(), { maxRetriesPerRequest: null });
  queue = new Queue(queueName, { connection: redis, prefix });
}

async function removeQueue(): Promise<void> {
  await queue.obliterate({ force: true });
  await queue.close();
  redis.disconnect();
}

const key = (name: string) => `${prefix}:${queueName}:${name}`;
const add = (jobId: string, options = {}) => queue.add("create", { of: jobId }, { ...jobOptions, jobId, ...options });

async function addSome(...ids: string[]): Promise<void> {
  for (const id of ids) await add(id);
}

/** Adds events as ingest does. */
async function addOurs(...ids: string[]): Promise<void> {
  const shared = { kind: "create", partner: "acme", receivedAt: "2026-06-14T07:27:17.335Z" } as const;
  const events = ids.map((eventId) => ({
    ...shared,
    eventId,
    sequence: 1,
    idempotencyKey: null,
    payload: { consumerTripPartnerExternalReference: `Zoë's ${eventId}` },
  }));
  await addNumberedEvents(redis, prefix, events);
}

interface Fetched {
  jobs: { id: string; json: JobJson }[];
  limitedMs: number;
  delayedMinutes: number;
}

function fetching(connection: Redis, database = "a database") {
  return { redis: connection, prefix, lockDurationMs: lockDuration, database: () => database };
}

function createOurBackend(held: HeldEvents, begin: BeginJob): RedisQueueBackend {
  const stalled = { maxStalledCount: 1, stalledCheckIntervalMs: 1, lockDurationMs: lockDuration };
  const makeBackend = createWorkerBackend({ ...fetching(redis), held, begin, ...stalled });
  return makeBackend(queueName, options());
}

/** @param limits of our backend */
async function fetchByUs(limits: HoldLimits = unlimited): Promise<Fetched> {
  const jobs: Fetched["jobs"] = [];
  const held = new HeldEvents(limits);
  const backend = createOurBackend(held, (json, id) => {
    jobs.push({ id, json });
    held.hold({ id, token, data: json.data as unknown as JobContent });
  });
  const end = await backend.moveToActive(token);
  return { jobs: jobs.map(withText), ...describeEnd(end) };
}

async function fetchByThem(): Promise<Fetched> {
  const backend = createRedisBackend(queueName, options());
  const jobs: Fetched["jobs"] = [];
  for (;;) {
    const answer: Answer = await backend.moveToActive(token);
    if (!answer[1]) return { jobs: jobs.map(withText), ...describeEnd(answer) };
    jobs.push({ id: String(answer[1]), json: answer[0] });
  }
}

type Answer = Awaited<ReturnType<RedisQueueBackend["moveToActive"]>>;
const options = (): WorkerOptions => ({ connection: redis, prefix, lockDuration });

function describeEnd([, , limitedMs = 0, delayedUntilMs = 0]: Answer) {
  const delayedMinutes = delayedUntilMs > 0 ? Math.round((delayedUntilMs - Date.now()) / 60_000) : 0;
  return { limitedMs: Math.ceil(limitedMs / 60_000), delayedMinutes };
}

/** Times differ between two runs. */
function withText({ id, json }: Fetched["jobs"][number]): Fetched["jobs"][number] {
  return { id, json: { ...json, data: toText(json.data), timestamp: 0, processedOn: 0 } };
}

/** BullMQ's backend returns the text, and ours the content. */
function toText(data: unknown): string {
  return typeof data === "string" ? data : (data as JobContent).text;
}

/** Each lock has a token, which differs between the two. */
async function dumpWithoutTokens(): Promise<Record<string, unknown>> {
  const { [key("marker").slice(prefix.length)]: _, ...dumped } = await dumpQueue(redis, prefix);
  return Object.fromEntries(
    Object.entries(dumped).map(([name, value]) => [name, name.endsWith(":lock") ? "a lock" : value]),
  );
}

const situations: [name: string, prepare: () => Promise<unknown>][] = [
  ["nothing waits", async () => {}],
  ["some wait", () => addSome("a", "b", "c")],
  [
    "a delayed one is not due",
    async () => {
      await addSome("a", "b");
      await add("later", { delay: 3_600_000 });
    },
  ],
  [
    "a delayed one is due",
    async () => {
      await addSome("a", "b");
      await add("soon", { delay: 1 });
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  ],
  [
    "one has a priority",
    async () => {
      await add("urgent", { priority: 1 });
      await addSome("a", "b");
    },
  ],
  [
    "the queue is paused",
    async () => {
      await addSome("a", "b");
      await queue.pause();
    },
  ],
  [
    "all workers together may have two",
    async () => {
      await addSome("a", "b", "c");
      await queue.setGlobalConcurrency(2);
    },
  ],
  [
    "all workers together may take one a minute",
    async () => {
      await addSome("a", "b");
      await queue.setGlobalRateLimit(1, 60_000);
    },
  ],
  [
    "one was tried before",
    async () => {
      await addSome("a", "b");
      await redis.hset(key("a"), "ats", 2, "atm", 2);
    },
  ],
  ["ours wait", () => addOurs("a", "b", "c")],
  [
    "ours wait, and some were tried or changed",
    async () => {
      await addOurs(
        ...["fetched", "retried", "extended", "named", "old", "late", "urgent", "optional", "more"],
        ...["spaced\nid", "unchanged"],
      );
      await redis.hset(key("fetched"), "processedOn", 1, "ats", 1);
      await redis.hset(key("retried"), "processedOn", 1, "ats", 1, "atm", 1);
      await redis.hset(key("extended"), "processedOn", 1, "ats", 0, "atm", 1);
      await redis.hset(key("named"), "name", "of\nlines");
      await redis.hset(key("old"), "timestamp", "1".repeat(15));
      await redis.hset(key("late"), "delay", 5);
      await redis.hset(key("urgent"), "priority", 1);
      await redis.hset(key("optional"), "opts", '{"attempts":3}');
      await redis.hset(key("more"), "stc", 3);
    },
  ],
];

describe("fetching events leaves Redis in the same state as BullMQ fetching one at a time", () => {
  test.each(situations)("%s", async (_, prepare) => {
    const results = [];
    for (const fetch of [fetchByUs, fetchByThem]) {
      await prepare();
      results.push({ ...(await fetch()), left: await dumpWithoutTokens() });
      await removeQueue();
      useNewQueue();
    }
    const [byUs, byThem] = results;
    expect(byUs).toEqual(byThem);
  });
});

describe("waiting events", () => {
  test("of ingest are fetched as two texts each, unless they were changed, and have the same content", async () => {
    const damaged = {
      c: { timestamp: "12x" },
      d: { timestamp: "1".repeat(16) },
      e: { timestamp: "" },
      f: { name: "" },
    };
    const ids = ["a", "b", ...Object.keys(damaged)];
    await addOurs(...ids);
    for (const [id, fields] of Object.entries(damaged)) await redis.hset(key(id), fields);
    // Redis stores the fields of a job with so long a text in another order.
    await redis.hset(key("b"), "data", `{"text":"${"long".repeat(2_000)}"}`);
    const { sendCommand } = redis;
    const answers: Promise<unknown>[] = [];
    const sent = vi.spyOn(redis, "sendCommand").mockImplementation((...command) => {
      const answer = sendCommand.apply(redis, command) as Promise<unknown>;
      answers.push(answer);
      return answer;
    });
    const fetchEvents = createEventFetcher(fetching(redis));
    const { jobs } = await fetchEvents(token, { maxEvents: 9, maxBytes: 99_999 });
    sent.mockRestore();

    const [, , ...parts] = (await answers.at(-1)) as unknown[];
    const isShort = (id: string) => !(id in damaged);
    expect(parts.map(Array.isArray)).toEqual(ids.flatMap((id) => [!isShort(id), false]));
    for (const [index, { json, jobId }] of jobs.entries()) {
      const stored = await redis.hgetall(key(jobId));
      expect(json.data).toMatchObject({ text: stored["data"], subject: stored["subject"], isMissing: false });
      expect({ jobId, isDamaged: (json.data as unknown as JobContent).damage !== null }).toEqual({
        jobId: ids[index],
        isDamaged: !isShort(jobId),
      });
      if (!isShort(jobId)) continue;
      const { name, timestamp, processedOn } = json;
      expect({ name, timestamp, processedOn }).toEqual({
        name: stored["name"],
        timestamp: Number(stored["timestamp"]),
        processedOn: Number(stored["processedOn"]),
      });
    }
  });

  test("are fetched by few calls, in their order", async () => {
    const ids = Array.from({ length: 300 }, (_, index) => `event-${index}`);
    await queue.addBulk(ids.map((jobId) => ({ name: "create", data: {}, opts: { ...jobOptions, jobId } })));
    const sent = vi.spyOn(redis, "sendCommand");
    const { jobs } = await fetchByUs();
    const calls = sent.mock.calls.filter(([{ name }]) => name === "evalsha" || name === "eval");
    sent.mockRestore();
    expect(jobs.map(({ id }) => id)).toEqual(ids);
    expect(calls.length).toBeLessThanOrEqual(4); // The fourth one when Redis didn't know the script yet.
  });

  test("are fetched up to the number that the consumer may hold, and another worker is woken for the others", async () => {
    await addSome("a", "b", "c", "d");
    await redis.del(key("marker"));
    expect((await fetchByUs({ ...unlimited, concurrency: 3 })).jobs).toHaveLength(3);
    expect(await redis.zrange(key("marker"), "0", "-1")).toEqual(["0"]);
  });

  test("of a priority wake another worker too when this one may hold no more", async () => {
    await addSome("a", "b");
    await add("urgent", { priority: 1 });
    await redis.del(key("marker"));
    expect((await fetchByUs({ ...unlimited, concurrency: 2 })).jobs).toHaveLength(2);
    expect(await redis.zrange(key("marker"), "0", "-1")).toEqual(["0"]);
  });

  test("of a queue that feeds another database stay, and wake another worker", async () => {
    const byOther = createEventFetcher(fetching(redis, "another database"));
    await addSome("a");
    expect((await fetchByUs()).jobs).toHaveLength(1);
    await addSome("b");
    await redis.del(key("marker"));
    expect(await byOther(token, { maxEvents: 9, maxBytes: 9_999 })).toMatchObject({ jobs: [], left: "closed" });
    expect(await redis.lrange(key("wait"), 0, -1)).toEqual(["b"]);
    expect(await redis.zrange(key("marker"), "0", "-1")).toEqual(["0"]);

    await redis.hdel(key("meta"), "database");
    expect((await byOther(token, { maxEvents: 9, maxBytes: 9_999 })).jobs).toHaveLength(1);
    expect(await redis.hget(key("meta"), "database")).toBe("another database");
  });

  test("stay in the queue while Redis does not permit to begin them", async () => {
    await addSome("a", "b");
    const user = `without-hset-${prefix}`.replaceAll(/[^\w-]/g, "");
    await redis.call("ACL", "SETUSER", user, "on", "nopass", "~*", "+@all", "-hset");
    await redis.hset(key("meta"), "database", "a database");
    const restricted = new Redis(redisUrl());
    try {
      await restricted.auth(user, "any");
      const fetchEvents = createEventFetcher(fetching(restricted));
      await expect(fetchEvents(token, { maxEvents: 9, maxBytes: 9_999 })).rejects.toThrow(/^ERR|^NOPERM/);
    } finally {
      restricted.disconnect();
      await redis.call("ACL", "DELUSER", user);
    }
    const left = [await redis.lrange(key("active"), 0, -1), await redis.lrange(key("wait"), 0, -1)];
    expect(left).toEqual([["a"], ["b"]]);
  });

  test("wake no worker once all of them are fetched", async () => {
    await addSome("a", "b");
    expect((await fetchByUs()).jobs).toHaveLength(2);
    expect(await redis.exists(key("marker"))).toBe(0);
  });

  test.each([
    ["BullMQ's", addSome],
    ["ours", addOurs],
  ])("are fetched until their text exceeds what the consumer may hold: %s", async (_, addThem) => {
    await addThem("a", "b", "c");
    const bytesOfOne = 2 * (await redis.hstrlen(key("a"), "data"));
    expect((await fetchByUs({ ...unlimited, maxHeldBytes: bytesOfOne + 1 })).jobs.map(({ id }) => id)).toEqual([
      "a",
      "b",
    ]);
  });

  test("are fetched again without a wake-up if several came, until only one has come", async () => {
    await addSome("a", "b");
    const begun: string[] = [];
    const backend = createOurBackend(new HeldEvents(unlimited), (_json, id) => {
      begun.push(id);
      if (begun.length <= 3) void redis.lmove(key("active"), key("wait"), "RIGHT", "LEFT");
    });
    await backend.moveToActive(token);
    expect(begun).toEqual(["a", "b", "a", "b", "a"]);
  });

  test("have a lock with another token each time that they are fetched", async () => {
    await addSome("a", "b");
    const tokens: string[] = [];
    const backend = createOurBackend(new HeldEvents({ ...unlimited, concurrency: 1 }), (_json, _id, itsToken) => {
      tokens.push(itsToken);
      // As if another worker had taken this one for dead.
      if (tokens.length === 1) void redis.lmove(key("active"), key("wait"), "LEFT", "RIGHT");
    });
    await backend.moveToActive(token);
    expect(tokens).toHaveLength(3);
    expect(new Set(tokens).size).toBe(3);
  });
});
