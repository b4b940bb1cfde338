import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createProducer, type Producer } from "../add/producer.ts";
import { createQueueReader, type QueueReader } from "./queue-reader.ts";

const prefix = uniquePrefix();
const eventId = "01a1fb0c-d72c-7345-a7ee-38bfa851309c";
let producer: Producer;
let reader: QueueReader;
let redis: Redis;

beforeAll(async () => {
  const options = { redisServers: redisUrl(), prefix, shardCount: 1, onError: () => {} };
  [producer, reader, redis] = [createProducer(options), createQueueReader(options), new Redis(redisUrl())];
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await waitFor(() => reader.readDatabase());
});

afterAll(async () => {
  reader.close();
  await producer.close();
  redis.disconnect();
});

test("an event is found as soon as it is queued, with its partner", async () => {
  expect(await reader.findEvent(eventId)).toBeUndefined();
  const payload = { consumerTripPartnerExternalReference: "TRIP-1" };
  const receivedAt = new Date().toISOString();
  await producer.enqueue({ eventId, kind: "create", partner: "acme", receivedAt, idempotencyKey: null, payload });
  expect(await reader.findEvent(eventId)).toEqual({ partner: "acme" });
});

test("an event that an operator puts back is found like any other", async () => {
  const replayed = eventId.replace(/c$/, "d");
  const envelope = { partner: "acme", payload: { consumerTripPartnerExternalReference: "TRIP-1" } };
  await producer.requeue({ eventId: replayed, text: "{}", envelope });
  expect(await reader.findEvent(replayed)).toEqual({ partner: "acme" });
});

test("another key of the queue is not an event", async () => {
  await redis.hset(`${prefix}:events:meta`, "version", "x");
  expect(await reader.findEvent("meta")).toBeUndefined();
});

test("a Redis that does not answer is an error, and not an event that is missing", async () => {
  const gone = createQueueReader({ redisServers: "redis://127.0.0.1:1", prefix, shardCount: 1, onError: () => {} });
  await expect(gone.findEvent(eventId)).rejects.toThrow();
  gone.close();
});
