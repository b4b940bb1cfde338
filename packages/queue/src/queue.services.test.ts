import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import { freePort, uniquePrefix, waitFor } from "@booking-events/harness";
import { maxClockDifferenceMs } from "@booking-events/runtime";
import { parseEnvelope } from "@booking-events/schema";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type AcceptedEvent, createEventAdder, serializeEvent } from "./add/add-events.ts";
import { EnqueueError, enqueueDeadlineMs } from "./add/confirmed-writes.ts";
import { createProducer, type Producer } from "./add/producer.ts";
import { jobOptions } from "./events/job-options.ts";
import { queueName } from "./events/queue-name.ts";
import { sequenceKey } from "./events/sequence.ts";
import { type Consumer, createConsumer } from "./take/consumer.ts";
import { DelayDelivery, type Delivery, ReleaseDelivery } from "./take/delivery.ts";
import type { GivenUpEvent } from "./take/sweep-failed.ts";
import { dumpQueue } from "./testing/dump-queue.ts";

let folder: string;
let server: DataServer;
let redis: Redis;
let prefix: string;
const cleanups: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-queue-"));
  server = await startRedis({ dir: folder });
  redis = new Redis(server.url);
  redis.on("error", () => {});
});

beforeEach(() => {
  prefix = uniquePrefix();
});

afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

function produce(redisUrl = server.url): Producer {
  const producer = createProducer({ redisServers: redisUrl, prefix, onError: () => {} });
  cleanups.push(() => producer.close());
  return producer;
}

function consume(
  handle: (delivery: Delivery) => Promise<void>,
  concurrency = 5,
  maxHeldBytes = Number.MAX_SAFE_INTEGER,
): Consumer {
  const consumer = createConsumer({
    redisServers: server.url,
    prefix,
    concurrency,
    maxHeldBytes,
    handle,
    onError: () => {},
  });
  cleanups.push(() => consumer.close());
  consumer.start("a database");
  return consumer;
}

/** Removes all events in the failed set. */
function sweep(consumer: Consumer, look: (event: GivenUpEvent) => void): Promise<number> {
  const judge = async (event: GivenUpEvent) => {
    look(event);
    return "take out" as const;
  };
  return consumer.sweepFailed({
    judge,
    onFault: (_, error) => {
      throw error;
    },
  });
}

function inspect(): Queue {
  const queue = new Queue(queueName, { connection: redis, prefix });
  cleanups.push(() => queue.close());
  return queue;
}

function anEvent(number = 1): AcceptedEvent {
  return {
    eventId: `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`,
    kind: "create",
    partner: "acme",
    receivedAt: "2026-11-20T00:00:00.000Z",
    idempotencyKey: null,
    payload: { consumerTripPartnerExternalReference: "TRIP-1" },
  };
}

/** An event is refused until the connection is ready, because the producer fails fast. */
async function enqueue(producer: Producer, event = anEvent()) {
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  return producer.enqueue(event);
}

describe("an event in the queue", () => {
  test("is delivered unchanged, with its version and its sequence", async () => {
    const sequence = await enqueue(produce());
    const envelope = { version: 1, sequence, ...anEvent() };
    const deliveries: Delivery[] = [];
    consume(async (delivery) => void deliveries.push(delivery));
    await waitFor(() => expect(deliveries).toHaveLength(1));
    expect(deliveries[0]).toMatchObject({ jobId: envelope.eventId, attempt: 1, isLastAttempt: false });
    expect(parseEnvelope(JSON.parse(deliveries[0]?.text ?? ""))).toEqual({ success: true, envelope });
  });

  test("keeps the payload's JSON if its sender has it", async () => {
    const payloadJson = '{"consumerTripPartnerExternalReference":"TRIP-1","1":"the sender\'s order","0":""}';
    const event = { ...anEvent(), payload: JSON.parse(payloadJson) };
    const producer = produce();
    const sequence = await enqueue(producer, { ...event, payloadJson, traceparent: null });
    const text = await redis.hget(`${prefix}:${queueName}:${event.eventId}`, "data");
    expect(text).toContain(`"payload":${payloadJson}}`);
    const envelope = { version: 1, sequence, ...event, traceparent: null };
    expect(parseEnvelope(JSON.parse(text ?? ""))).toEqual({ success: true, envelope });
  });

  test("leaves nothing in Redis when it is finished", async () => {
    await enqueue(produce());
    consume(async () => {});
    const queue = inspect();
    await waitFor(async () => {
      expect(await queue.getJobCounts()).toMatchObject({ completed: 0, waiting: 0, active: 0, failed: 0 });
      expect(await redis.keys(`${prefix}:events:0199a000*`)).toEqual([]);
    });
  });

  test("is delivered again after the retry policy's delay when its handler failed", async () => {
    await enqueue(produce());
    const attempts: number[] = [];
    consume(async ({ attempt }) => {
      attempts.push(attempt);
      if (attempt === 1) throw new Error("not this time");
    });
    await waitFor(() => expect(attempts).toEqual([1, 2]));
  });

  test("goes back without counting an attempt when the worker stops before applying it", async () => {
    await enqueue(produce());
    const attempts: number[] = [];
    const first = consume(async ({ attempt }) => {
      attempts.push(attempt);
      throw new ReleaseDelivery("stopping");
    });
    await waitFor(() => expect(attempts.length).toBeGreaterThan(0));
    await first.drain();
    await first.close();
    const later: number[] = [];
    consume(async ({ attempt }) => void later.push(attempt));
    await waitFor(() => expect(later).toEqual([1]));
    expect(new Set(attempts)).toEqual(new Set([1]));
  });
});

test("a delayed event keeps its attempts, and others are delivered before it", async () => {
  const producer = produce();
  await enqueue(producer, anEvent(1));
  await producer.enqueue(anEvent(2));
  const deliveries: [string, number][] = [];
  consume(async ({ jobId, attempt }) => {
    deliveries.push([jobId, attempt]);
    if (deliveries.length === 1) throw new DelayDelivery(300);
  }, 1);
  const [first, second] = [anEvent(1).eventId, anEvent(2).eventId];
  await waitFor(() => expect(deliveries).toEqual([first, second, first].map((id) => [id, 1])));
  await waitFor(async () => expect(await redis.exists(`${prefix}:${queueName}:${first}`)).toBe(0));
});

describe("a delivery's text", () => {
  const jobId = anEvent().eventId;
  const key = () => `${prefix}:${queueName}:${jobId}`;

  test.each([
    ["invalid JSON", '{"version":1,', '{"version":1,'],
    [
      "JSON with blanks and keys in an order of its own",
      '{ "b" : 1.0,  "a": "\\u00e9" }',
      '{ "b" : 1.0,  "a": "\\u00e9" }',
    ],
    ["text of 16 MB", "é".repeat(8_000_000), "é".repeat(8_000_000)],
    ["empty", "", "{}"],
    ["missing", null, "{}"],
  ])("is the text in Redis: %s", async (_, data, text) => {
    await enqueue(produce());
    if (data === null) await redis.hdel(key(), "data");
    else await redis.hset(key(), "data", data);
    const texts: string[] = [];
    const consumer = consume(async (delivery) => {
      texts.push(delivery.text);
      throw Object.assign(new Error("given up"), { name: "UnrecoverableError" });
    });
    const queue = inspect();
    await waitFor(async () => expect(await queue.getJobCounts("failed")).toEqual({ failed: 1 }));
    await sweep(consumer, ({ delivery }) => void texts.push(delivery.text));
    expect(texts.length).toBe(2);
    expect(texts.every((each) => each === text)).toBe(true);
  });

  test("is the same however the event was fetched: first, next, after a failure, or after stalling", async () => {
    const producer = produce();
    const texts = new Map<string, string[]>();
    await enqueue(producer, anEvent(1));
    for (const number of [2, 3, 4]) await producer.enqueue(anEvent(number));
    consume(async ({ jobId, text, attempt }) => {
      texts.set(jobId, [...(texts.get(jobId) ?? []), text]);
      if (attempt === 1) throw new Error("not this time");
    }, 1);
    await waitFor(() => expect([...texts.values()].flat()).toHaveLength(8));
    for (const [jobId, [first = "", second]] of texts) {
      expect(JSON.parse(first)).toMatchObject({ eventId: jobId });
      expect(second).toBe(first);
    }
  });

  test("has the subject, which is the same for all events of a booking", async () => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    await producer.enqueue({ ...anEvent(2), kind: "delete" });
    await producer.enqueue({ ...anEvent(3), partner: "another" });
    await producer.enqueue({ ...anEvent(4), payload: { consumerTripPartnerExternalReference: "TRIP-2" } });
    await producer.requeue({ eventId: anEvent(5).eventId, text: "{}", envelope: anEvent(5) });
    const subjects = new Map<string, string>();
    consume(async (delivery) => void subjects.set(delivery.jobId, delivery.subject), 1);
    await waitFor(() => expect(subjects.size).toBe(5));
    const [one, two, three, four, five] = [1, 2, 3, 4, 5].map((number) => subjects.get(anEvent(number).eventId));
    expect([two, five]).toEqual([one, one]);
    expect(new Set([one, three, four]).size).toBe(3);
  });
});

describe("an event in Redis", () => {
  test("is stored as BullMQ would store it, plus its subject", async () => {
    const producer = produce();
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    const envelopes = await Promise.all(
      [1, 2, 3].map(async (number) => {
        const event = anEvent(number);
        return { version: 1, sequence: await producer.enqueue(event), ...event };
      }),
    );
    const ours = await dumpQueue(redis, prefix);
    for (const { eventId } of envelopes) {
      const job = ours[`:${queueName}:${eventId}`] as { subject?: string };
      expect(job.subject).toMatch(/^\w+ [\w-]{16}$/);
      delete job.subject;
    }
    expect(Object.keys(ours)).toEqual(expect.arrayContaining([":events:marker", ":events:wait"]));
    prefix = uniquePrefix();
    const queue = new Queue(queueName, { connection: redis, prefix });
    cleanups.push(() => queue.close());
    for (const envelope of envelopes) await queue.add("create", envelope, { ...jobOptions, jobId: envelope.eventId });
    const theirs = await dumpQueue(redis, prefix);
    // BullMQ repeats the id here although the key contains it.
    for (const { eventId } of envelopes) {
      expect(theirs[`:${queueName}:${eventId}`]).toHaveProperty("opts.jobId", eventId);
      Reflect.deleteProperty((theirs[`:${queueName}:${eventId}`] as { opts: object }).opts, "jobId");
    }
    expect(ours).toEqual(theirs);
  });

  test("with a sequence of its own is stored the same way, and only once", async () => {
    const producer = produce();
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    const sequence = await producer.enqueue(anEvent());
    const ingested = await dumpQueue(redis, prefix);
    await redis.del(`${prefix}:${queueName}:wait`, `${prefix}:${queueName}:${anEvent().eventId}`);
    const numbered = { ...anEvent(), sequence };
    expect(await producer.enqueueNumbered([numbered])).toBe(1);
    expect(await producer.enqueueNumbered([{ ...numbered, kind: "delete" }])).toBe(0);
    expect(await dumpQueue(redis, prefix)).toEqual(ingested);
  });

  test("with a sequence that is later than those of events to come is refused", async () => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    const before = await dumpQueue(redis, prefix);
    const [seconds] = await redis.time();
    const numbered = [anEvent(2), anEvent(3)].map((event) => ({ ...event, sequence: 1 }));
    const refused = producer.enqueueNumbered([...numbered, { ...anEvent(4), sequence: (Number(seconds) + 60) * 1e6 }]);
    await expect(refused).rejects.toMatchObject({ name: "EnqueueError", cause: { name: "SequenceInFuture" } });
    expect(await dumpQueue(redis, prefix)).toEqual(before);
    expect(await producer.enqueueNumbered(numbered)).toBe(2);
  });

  test("wakes no worker while the queue is paused, and is delivered when it is resumed", async () => {
    const queue = inspect();
    await queue.pause();
    await enqueue(produce());
    expect(await redis.exists(`${prefix}:${queueName}:marker`)).toBe(0);
    const deliveries: Delivery[] = [];
    consume(async (delivery) => void deliveries.push(delivery));
    await queue.resume();
    await waitFor(() => expect(deliveries).toHaveLength(1));
  });

  test("does not change when it is added again, as ioredis does after a lost connection", async () => {
    const producer = produce();
    await enqueue(producer);
    const before = await dumpQueue(redis, prefix);
    await producer.enqueue({ ...anEvent(), kind: "delete" });
    expect(await dumpQueue(redis, prefix)).toEqual(before);
  });

  test("is added even if Redis no longer knows our script", async () => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    await redis.script("FLUSH");
    await producer.enqueue(anEvent(2));
    const { waiting } = await inspect().getJobCounts();
    expect(waiting).toBe(2);
  });

  test("is no longer referenced in ingest", async () => {
    const sent = vi.spyOn(redis, "sendCommand");
    try {
      await createEventAdder(redis, prefix)([serializeEvent(anEvent())], performance.now() + 1_000);
      const commands = sent.mock.calls.map(([command]) => command);
      expect(commands.map(({ name }) => name)).toContain("evalsha");
      expect(JSON.stringify(commands.map(({ args }) => args))).not.toContain("TRIP-1");
    } finally {
      sent.mockRestore();
    }
  });

  test("is not added if Redis reads it after its deadline", async () => {
    const addEvents = createEventAdder(redis, prefix);
    await expect(addEvents([serializeEvent(anEvent(1))], performance.now() - 1)).rejects.toThrow(
      "after their deadline",
    );
    expect(await dumpQueue(redis, prefix)).toEqual({});
    // The clock was set back, or is another server's. The refusal contains its time.
    await addEvents([serializeEvent(anEvent(2))], performance.now() + 1_000);
    expect(Object.keys(await dumpQueue(redis, prefix))).toContain(`:${queueName}:${anEvent(2).eventId}`);
  });
});

test("a consumer holds as many events as its concurrency, and waits for the next on one connection", async () => {
  const producer = produce();
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await Promise.all(Array.from({ length: 400 }, (_, index) => producer.enqueue(anEvent(index))));
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>();
  let held = 0;
  const countBlocked = async () => Number(/blocked_clients:(\d+)/.exec(await redis.info("clients"))?.[1]);
  const consumer = consume(async () => {
    held += 1;
    await mayGoOn;
  }, 250);
  await waitFor(() => expect(held).toBe(250));
  expect(await consumer.readState()).toMatchObject({ waiting: 150, delayed: 0 });
  goOn();
  await waitFor(() => expect(held).toBe(400));
  await waitFor(async () => expect(await countBlocked()).toBe(1));
});

test("an event stays with its worker when the clock of the worker's host is set back", async () => {
  await enqueue(produce());
  const recovery = { lockDurationMs: 400, stalledCheckIntervalMs: 200 };
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  const attempts: number[] = [];
  const consumer = createConsumer({
    ...{ redisServers: server.url, prefix, recovery, concurrency: 5, maxHeldBytes: 10_000, onError: () => {} },
    async handle({ attempt }) {
      attempts.push(attempt);
      await isOver;
    },
  });
  cleanups.push(() => consumer.close());
  consumer.start("a database");
  await waitFor(() => expect(attempts).toHaveLength(1));
  const now = Date.now;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
  cleanups.push(() => clock.mockRestore());
  await wait(5 * recovery.lockDurationMs);
  expect(await redis.exists(`${prefix}:${queueName}:${anEvent().eventId}:lock`)).toBe(1);
  end();
  await waitFor(async () => expect(await consumer.isEmpty()).toBe(true));
  expect(attempts).toEqual([1]);
});

test("BullMQ's event stream, which we do not read, is kept short", async () => {
  consume(async () => {});
  await waitFor(async () => expect(await redis.hget(`${prefix}:${queueName}:meta`, "opts.maxLenEvents")).toBe("1000"));
});

describe("an event in BullMQ's failed set", () => {
  const giveUp = Object.assign(new Error("given up"), { name: "UnrecoverableError" });

  async function untilGivenUp(): Promise<Consumer> {
    await enqueue(produce());
    const consumer = consume(() => Promise.reject(giveUp));
    const queue = inspect();
    await waitFor(async () => expect(await queue.getJobCounts("failed")).toEqual({ failed: 1 }));
    return consumer;
  }

  test("is removed once it is stored elsewhere", async () => {
    const consumer = await untilGivenUp();
    const kept: [string, string][] = [];
    expect(await sweep(consumer, ({ delivery, reason }) => void kept.push([delivery.jobId, reason]))).toBe(1);
    expect(kept).toEqual([[anEvent().eventId, "given up"]]);
    expect(await sweep(consumer, () => {})).toBe(0);
  });

  test("stays in Redis while it cannot be stored elsewhere", async () => {
    const consumer = await untilGivenUp();
    const faults: unknown[] = [];
    const noRoom = new Error("no room");
    const onFault = (jobId: string, error: unknown) => faults.push([jobId, error]) > 0;
    expect(await consumer.sweepFailed({ judge: () => Promise.reject(noRoom), onFault })).toBe(0);
    expect(faults).toEqual([[anEvent().eventId, noRoom]]);
    expect(await sweep(consumer, () => {})).toBe(1);
  });

  test("can be put back as the same event any number of times", async () => {
    const consumer = await untilGivenUp();
    let text = "";
    await sweep(consumer, ({ delivery }) => {
      text = delivery.text;
    });
    await consumer.drain();
    const producer = produce();
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    for (let times = 0; times < 3; times += 1)
      await producer.requeue({ eventId: anEvent().eventId, text, envelope: anEvent() });
    const deliveries: Delivery[] = [];
    consume(async (delivery) => void deliveries.push(delivery));
    await waitFor(() => expect(deliveries).toHaveLength(1));
    expect(deliveries[0]).toMatchObject({ text, jobId: anEvent().eventId, isReplay: true, attempt: 1 });
    expect(await consumer.readState()).toMatchObject({ waiting: 0, delayed: 0 });
  });
});

test("an event that this process could not send before its deadline is refused and not queued", async () => {
  const producer = produce();
  await enqueue(producer, anEvent(1));
  const tooLate = producer.enqueue(anEvent(2));
  // To the event, this looks like a freeze between its call and the end of the turn, when all events are sent.
  const thawAtMs = performance.now() + enqueueDeadlineMs + 100;
  while (performance.now() < thawAtMs);
  await expect(tooLate).rejects.toThrow(EnqueueError);
  await producer.enqueue(anEvent(3));
  expect(await redis.lrange(`${prefix}:${queueName}:wait`, 0, -1)).toEqual([anEvent(3).eventId, anEvent(1).eventId]);
});

test("a machine whose clock stopped queues nothing with it, and is told the lost time", async () => {
  const lostMs = vi.fn();
  const producer = createProducer({ redisServers: server.url, prefix, onError: () => {}, onTimeLost: lostMs });
  cleanups.push(() => producer.close());
  await enqueue(producer, anEvent(1));
  await producer.enqueue(anEvent(2));
  expect(Math.max(...lostMs.mock.calls.flat())).toBeLessThan(500);
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() - 3_000);
  try {
    // Checking Redis in the meantime does not make waiting events look new.
    expect(await producer.findProblems()).toEqual([]);
    await expect(producer.enqueue(anEvent(3))).rejects.toThrow(EnqueueError);
    expect(lostMs.mock.lastCall?.[0]).toBeGreaterThan(2_500);
    await producer.enqueue(anEvent(4));
  } finally {
    clock.mockRestore();
  }
  expect(await redis.lrange(`${prefix}:${queueName}:wait`, 0, -1)).toEqual(
    [4, 2, 1].map((number) => anEvent(number).eventId),
  );
});

test("an event in transit while Redis' clock is set back is not queued, and the next one is", async () => {
  const addEvents = createEventAdder(redis, prefix);
  await addEvents([serializeEvent(anEvent(1))], performance.now() + 1_000);
  const now = performance.now.bind(performance);
  // Redis' clock and ours now differ as after Redis' clock was set by half a minute.
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 30_000);
  try {
    const late = addEvents([serializeEvent(anEvent(2))], performance.now() - 1);
    await expect(late).rejects.toThrow("clock was set back");
    await addEvents([serializeEvent(anEvent(3))], performance.now() + 1_000);
  } finally {
    clock.mockRestore();
  }
  expect(await redis.lrange(`${prefix}:${queueName}:wait`, 0, -1)).toEqual([anEvent(3).eventId, anEvent(1).eventId]);
});

test.each([
  ["slower", 1],
  ["faster", -1],
])("a clock that runs %s than Redis' for hours without events loses none", async (_, direction) => {
  const lostMs = vi.fn();
  const producer = createProducer({ redisServers: server.url, prefix, onError: () => {}, onTimeLost: lostMs });
  cleanups.push(() => producer.close());
  await enqueue(producer, anEvent(1));
  const now = performance.now.bind(performance);
  let driftMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() - direction * driftMs);
  try {
    for (; driftMs < 3_000; driftMs += 20) expect(await producer.findProblems()).toEqual([]);
    await producer.enqueue(anEvent(2));
    expect(Math.max(...lostMs.mock.calls.flat().map(Math.abs))).toBeLessThan(500);
  } finally {
    clock.mockRestore();
  }
});

describe("when Redis is unhealthy", () => {
  test("a busy worker whose fetch is refused does not ask again at once", async () => {
    const producer = produce();
    for (let number = 1; number <= 2; number += 1) await enqueue(producer, anEvent(number));
    const errors: Error[] = [];
    const delivered: string[] = [];
    const consumer = createConsumer({
      redisServers: server.url,
      prefix,
      concurrency: 5,
      maxHeldBytes: Number.MAX_SAFE_INTEGER,
      onError: (error) => void errors.push(error),
      async handle({ jobId }) {
        if (delivered.push(jobId) === 1) await redis.replicaof("127.0.0.1", "1");
      },
    });
    cleanups.push(() => consumer.close());
    consumer.start("a database");
    try {
      await waitFor(() => expect(errors.length).toBeGreaterThan(0));
      await wait(500);
      expect(errors.length).toBeLessThan(20);
    } finally {
      await redis.replicaof("NO", "ONE");
    }
    await enqueue(producer, anEvent(3));
    await waitFor(() => expect(new Set(delivered).size).toBe(3));
  });

  test("events still leave a Redis that has no memory for more", async () => {
    const producer = produce();
    for (let number = 1; number <= 10; number += 1) await enqueue(producer, anEvent(number));
    const delivered: string[] = [];
    await redis.config("SET", "maxmemory", "1");
    try {
      await expect(producer.enqueue(anEvent(11))).rejects.toThrow(EnqueueError);
      consume(async ({ jobId }) => void delivered.push(jobId));
      await waitFor(() => expect(delivered).toHaveLength(10));
      await waitFor(async () => expect(await redis.exists(`${prefix}:${queueName}:active`)).toBe(0));
    } finally {
      await redis.config("SET", "maxmemory", "0");
    }
  });

  describe("a Redis that has no memory for more still", () => {
    const recovery = { lockDurationMs: 400, stalledCheckIntervalMs: 200 };
    const locks = () => redis.exists(`${prefix}:${queueName}:${anEvent(1).eventId}:lock`);
    let errors: Error[];
    let consumer: Consumer;
    let handle: (delivery: Delivery) => Promise<void>;

    beforeEach(async () => {
      await enqueue(produce(), anEvent(1));
      errors = [];
      consumer = createConsumer({
        ...{ redisServers: server.url, prefix, recovery, concurrency: 5, maxHeldBytes: 10_000 },
        handle: (delivery) => handle(delivery),
        onError: (error) => void errors.push(error),
      });
      cleanups.push(() => consumer.close());
      await redis.config("SET", "maxmemory", "1");
      cleanups.push(async () => void (await redis.config("SET", "maxmemory", "0")));
    });

    test("knows which workers are alive", async () => {
      await waitFor(async () => expect(await consumer.readState()).toMatchObject({ workers: [] }));
      await consumer.recordAlive();
      expect((await consumer.readState()).workers).toHaveLength(1);
    });

    test("keeps the locks of events that a worker holds", async () => {
      const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
      const delivered: string[] = [];
      handle = async ({ jobId }) => {
        delivered.push(jobId);
        await isOver;
      };
      consumer.start("a database");
      await waitFor(() => expect(delivered).toHaveLength(1));
      await wait(5 * recovery.lockDurationMs);
      expect(await locks()).toBe(1);
      end();
      await waitFor(async () => expect(await consumer.isEmpty()).toBe(true));
      expect({ delivered, errors }).toEqual({ delivered: [anEvent(1).eventId], errors: [] });
    });

    test("gets the events of a dead worker back", async () => {
      const [wait, active] = ["wait", "active"].map((name) => `${prefix}:${queueName}:${name}`) as [string, string];
      await redis.config("SET", "maxmemory", "0");
      await redis.lmove(wait, active, "RIGHT", "LEFT");
      await redis.config("SET", "maxmemory", "1");
      const delivered: string[] = [];
      handle = async ({ jobId }) => void delivered.push(jobId);
      consumer.start("a database");
      await waitFor(() => expect(delivered).toEqual([anEvent(1).eventId]));
    });

    test("takes events out that BullMQ has given up", async () => {
      const [wait, failed] = ["wait", "failed"].map((name) => `${prefix}:${queueName}:${name}`) as [string, string];
      await redis.config("SET", "maxmemory", "0");
      await redis.lrem(wait, 1, anEvent(1).eventId);
      await redis.zadd(failed, 1, anEvent(1).eventId);
      await redis.config("SET", "maxmemory", "1");
      const judged = await consumer.sweepFailed({
        judge: async ({ runTrial }) => {
          await runTrial(async () => {});
          return "take out";
        },
        onFault: (_, error) => {
          throw error;
        },
      });
      expect(judged).toBe(1);
      expect(await consumer.isEmpty()).toBe(true);
    });

    test("retries events", async () => {
      const attempts: number[] = [];
      handle = async ({ attempt }) => {
        if (attempts.push(attempt) === 1) throw new Error("again");
      };
      consumer.start("a database");
      await waitFor(() => expect(attempts).toEqual([1, 2]));
      expect(errors).toEqual([]);
    });
  });

  test("an event is refused within the deadline while Redis is down, and accepted when it is back", async () => {
    const port = await freePort();
    const producer = produce(`redis://127.0.0.1:${port}`);
    await expect(producer.enqueue(anEvent())).rejects.toThrow(EnqueueError);
    expect(await producer.findProblems()).toEqual([expect.stringContaining("Redis does not answer")]);
  });

  test("a Redis that was killed and restarted still has accepted events, and accepts new ones", async () => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    server.kill("SIGKILL");
    await server.ended();
    await expect(producer.enqueue(anEvent(2))).rejects.toThrow(EnqueueError);
    await server.restart();
    await enqueue(producer, anEvent(3));
    expect(await redis.exists(`${prefix}:events:${anEvent(1).eventId}`)).toBe(1);
    expect(await redis.exists(`${prefix}:events:${anEvent(3).eventId}`)).toBe(1);
  });

  test("while Redis is down, a worker's regular questions fail at once, so they do not pile up", async () => {
    const consumer = createConsumer({
      redisServers: `redis://127.0.0.1:${await freePort()}`,
      prefix,
      concurrency: 5,
      maxHeldBytes: 1_000,
      handle: async () => {},
      onError: () => {},
    });
    cleanups.push(() => consumer.close());
    const { isEmpty, readState, readShardCounts, record } = consumer;
    for (const ask of [isEmpty, readState, readShardCounts, record.read])
      await expect(ask()).rejects.toThrow("There is no connection to Redis.");
  });

  test("a frozen Redis makes nobody wait, and refused events are not queued later, after newer ones", async () => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    server.kill("SIGSTOP");
    try {
      // Its sequence is assigned when Redis resumes.
      await expect(producer.enqueue(anEvent(2))).rejects.toThrow(EnqueueError);
    } finally {
      server.kill("SIGCONT");
    }
    await enqueue(producer, anEvent(3));
    await enqueue(producer, anEvent(4));
    expect(await redis.exists(`${prefix}:events:${anEvent(2).eventId}`)).toBe(0);
    expect(await redis.exists(`${prefix}:events:${anEvent(4).eventId}`)).toBe(1);
  });

  test("an event gathered while Redis is frozen is refused as soon as those in progress", async () => {
    const [producer, another] = [produce(), produce()];
    for (const each of [producer, another]) await enqueue(each);
    server.kill("SIGSTOP");
    try {
      const refused: string[] = [];
      const attempt = (by: Producer, name: string) => by.enqueue(anEvent()).catch(() => void refused.push(name));
      const attempts: Promise<unknown>[] = [];
      for (const name of ["sent", "sent", "waiting"]) {
        attempts.push(attempt(producer, name));
        await nextTurn();
      }
      await wait(enqueueDeadlineMs / 2);
      await Promise.all([...attempts, attempt(another, "later")]);
      expect(refused.toSorted()).toEqual(["later", "sent", "sent", "waiting"]);
      expect(refused.at(-1)).toBe("later");
    } finally {
      server.kill("SIGCONT");
    }
  });

  test("an event whose sequence would be far ahead is refused, and accepted once it would not be", async () => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    // As after Redis' clock was set forward together with the clock of an ingest.
    await redis.set(sequenceKey(prefix), (Date.now() + maxClockDifferenceMs + 60_000) * 1_000);
    const before = await dumpQueue(redis, prefix);
    const refusal = await producer.enqueue(anEvent(2)).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: "EnqueueError", cause: { name: "SequenceTooFarAhead" } });
    expect(await dumpQueue(redis, prefix)).toEqual(before);
    expect(await producer.findProblems()).toEqual([expect.stringContaining("last sequence number")]);
    await redis.set(sequenceKey(prefix), Date.now() * 1_000);
    await enqueue(producer, anEvent(2));
  });

  test("an event whose sequence would be far behind is refused, and accepted once it would not be", async () => {
    const producer = produce();
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    const before = await dumpQueue(redis, prefix);
    // As with a Redis whose clock is 500 days behind.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 500 * 86_400_000 });
    try {
      const refusal = await producer.enqueue(anEvent(1)).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ name: "EnqueueError", cause: { name: "SequenceTooFarBehind" } });
      expect(await producer.findProblems()).toEqual([
        expect.stringMatching(/^Redis' clock is 500 days behind this host's\. Correct/),
      ]);
    } finally {
      vi.useRealTimers();
    }
    expect(await dumpQueue(redis, prefix)).toEqual(before);
    await enqueue(producer, anEvent(1));
  });

  test.each([
    ["appendfsync", "everysec", "always", /appendfsync is everysec/],
    ["appendonly", "no", "yes", /no append-only file/],
    ["maxmemory-policy", "allkeys-lru", "noeviction", /maxmemory-policy is allkeys-lru/],
    ["no-appendfsync-on-rewrite", "yes", "no", /Set: no-appendfsync-on-rewrite no/],
  ])("%s %s is reported as a problem", async (name, bad, good, message) => {
    const producer = produce();
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    await redis.config("SET", name, bad);
    try {
      expect(await producer.findProblems()).toEqual([expect.stringMatching(message)]);
    } finally {
      await redis.config("SET", name, good);
    }
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  });

  test("a Redis that forbids CONFIG is judged by INFO", async () => {
    await redis.acl("SETUSER", "no-config", "on", ">password", "~*", "&*", "+@all", "-config");
    const url = new URL(server.url);
    url.username = "no-config";
    url.password = "password";
    const producer = produce(url.href);
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  });

  test.each([
    ["READONLY", (on: boolean) => (on ? redis.replicaof("127.0.0.1", "1") : redis.replicaof("NO", "ONE"))],
    ["OOM", (on: boolean) => redis.config("SET", "maxmemory", on ? "1" : "0")],
  ])("%s refuses an event, and ends by itself", async (_, set) => {
    const producer = produce();
    await enqueue(producer, anEvent(1));
    await set(true);
    try {
      await expect(producer.enqueue(anEvent(2))).rejects.toThrow(EnqueueError);
    } finally {
      await set(false);
    }
    await enqueue(producer, anEvent(3));
  });
});
