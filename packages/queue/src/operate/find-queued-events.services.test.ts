import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { createProducer } from "../add/producer.ts";
import { queueName } from "../events/queue-name.ts";
import { findQueuedEvents } from "./find-queued-events.ts";

const prefix = uniquePrefix();
const queue = { redisServers: redisUrl(), prefix };
const redis = new Redis(redisUrl());
const producer = createProducer({ ...queue, onError: () => {} });

afterAll(async () => {
  redis.disconnect();
  await producer.close();
});

function event(number: number) {
  return {
    eventId: `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`,
    kind: "create" as const,
    partner: "acme",
    sequence: number,
    receivedAt: "2026-11-20T00:00:00.000Z",
    idempotencyKey: null,
    payload: { consumerTripPartnerExternalReference: `TRIP-${number % 1_000}` },
  };
}

test("an event is found among thousands, whatever else is in the queue, and the search has a limit", async () => {
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.enqueueNumbered(Array.from({ length: 3_500 }, (_, index) => event(index + 1)));
  // An id without a job, and something that is no job.
  await redis.lpush(`${prefix}:${queueName}:wait`, "missing", "wrong");
  await redis.set(`${prefix}:${queueName}:wrong`, "text");
  const wanted = { shardCount: 1, ...queue, partner: "acme", reference: "TRIP-7" };
  const all = await findQueuedEvents(wanted);
  expect(all.events.map(({ envelope }) => envelope?.sequence).sort()).toEqual([1_007, 2_007, 3_007, 7]);
  expect(all).toMatchObject({ total: 3_502, looked: 3_502 });
  expect((await findQueuedEvents({ ...wanted, partner: "other" })).events).toEqual([]);
  await producer.enqueueNumbered([{ ...event(5_007), test: true }]);
  expect((await findQueuedEvents({ ...wanted, isTest: true })).events).toMatchObject([
    { envelope: { sequence: 5_007 } },
  ]);
  expect((await findQueuedEvents(wanted)).events).toHaveLength(4);
  // The newest are first.
  const some = await findQueuedEvents({ ...wanted, maxLooked: 1_100 });
  expect(some).toMatchObject({ total: 3_503, looked: 1_100 });
  expect(some.events.map(({ envelope }) => envelope?.sequence)).toEqual([3_007]);
});
