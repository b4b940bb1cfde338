import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { createShardedProducer } from "../add/sharded-producer.ts";
import { queueName } from "../events/queue-name.ts";
import { shardPrefix } from "../shards/shards.ts";
import { findQueuedEvent } from "./find-queued-event.ts";

const queue = { redisServers: redisUrl(), prefix: uniquePrefix(), shardCount: 4 };
const redis = new Redis(redisUrl());
const producer = createShardedProducer({ ...queue, onError: () => {} });

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
    payload: { consumerTripPartnerExternalReference: `TRIP-${number}` },
  };
}

test("an event is found in whatever shard it is, and it is said what it waits for", async () => {
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  const events = Array.from({ length: 20 }, (_, index) => event(index + 1));
  await producer.enqueueNumbered(events);
  for (const { eventId, sequence } of events)
    expect(await findQueuedEvent(queue, eventId)).toMatchObject({ eventId, state: "waiting", envelope: { sequence } });
  expect(await findQueuedEvent(queue, event(99).eventId)).toBeUndefined();

  const { eventId } = event(1);
  for (let shard = 0; shard < queue.shardCount; shard += 1) {
    const keyOf = (name: string) => `${shardPrefix(queue.prefix, shard)}:${queueName}:${name}`;
    if ((await redis.lrem(keyOf("wait"), 1, eventId)) === 0) continue;
    await redis.lpush(keyOf("active"), eventId);
    expect(await findQueuedEvent(queue, eventId)).toMatchObject({ state: "held" });
    await redis.lrem(keyOf("active"), 1, eventId);
    await redis.zadd(keyOf("delayed"), String(Date.UTC(2027, 0, 1) * 0x1000), eventId);
  }
  expect(await findQueuedEvent(queue, eventId)).toMatchObject({
    state: "delayed",
    nextAttemptAt: new Date("2027-01-01T00:00:00Z"),
  });
});
