import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import type { RedisServers } from "@booking-events/runtime";
import { expect } from "vitest";
import type { AcceptedEvent } from "../add/add-events.ts";
import { enqueueDeadlineMs } from "../add/confirmed-writes.ts";
import { createProducer } from "../add/producer.ts";
import { createConsumer } from "../take/consumer.ts";

const pauseMs = 5;
const maxHeldBytes = 1_000_000;
/** Partners get an answer in time, also on a busy machine. */
const longestRefusalMs = enqueueDeadlineMs + 400;
/** What a check of the lost time may mistake for it, on a busy machine. */
const imprecisionMs = 200;

/** How long a failover may take. */
export const longEnough = { timeoutMs: 30_000 };

export function anEvent(): AcceptedEvent {
  const eventId = randomUUID();
  return {
    eventId,
    kind: "create",
    partner: "acme",
    idempotencyKey: null,
    receivedAt: new Date().toISOString(),
    payload: { consumerTripPartnerExternalReference: eventId },
  };
}

/** Posts events one after another, and consumes them, until the whole is stopped. */
export function postAndConsume(location: { redisServers: RedisServers; prefix: string }, replicasToConfirm = 0) {
  const seen = {
    accepted: new Set<string>(),
    delivered: new Set<string>(),
    errors: [] as Error[],
    refusals: [] as { error: Error; afterMs: number }[],
    lostMs: [] as number[],
    missingJobs: [] as string[],
  };
  const { accepted, delivered, errors, refusals, lostMs, missingJobs } = seen;
  const onError = (error: Error) => void errors.push(error);
  const onTimeLost = (ms: number) => void lostMs.push(ms);
  const producer = createProducer({ ...location, replicasToConfirm, onError, onTimeLost });
  const consumer = createConsumer({
    ...location,
    concurrency: 10,
    maxHeldBytes,
    onError,
    onMissingJob: (jobId) => void missingJobs.push(jobId),
    async handle({ jobId }) {
      await sleep(20);
      delivered.add(jobId);
    },
  });
  consumer.start("a database");
  let isPosting = true;

  async function post(): Promise<void> {
    while (isPosting) {
      const event = anEvent();
      const startedAtMs = Date.now();
      try {
        await producer.enqueue(event);
        accepted.add(event.eventId);
      } catch (error) {
        refusals.push({ error: error as Error, afterMs: Date.now() - startedAtMs });
      }
      await sleep(pauseMs);
    }
  }

  /** The accepted events that no worker has got. */
  const missing = () => [...accepted].filter((eventId) => !delivered.has(eventId));
  const posting = post();
  async function stopPosting(): Promise<void> {
    isPosting = false;
    await posting;
  }

  return {
    producer,
    consumer,
    ...seen,
    missing,
    stopPosting,
    async untilNothingIsMissing(): Promise<void> {
      await stopPosting();
      await waitFor(() => missing().length === 0, longEnough);
      expect(Math.max(0, ...refusals.map(({ afterMs }) => afterMs))).toBeLessThan(longestRefusalMs);
      // The clocks of two servers differ, which says nothing about this process.
      expect(lostMs.filter((ms) => Math.abs(ms) > imprecisionMs)).toEqual([]);
    },
    async stop(): Promise<void> {
      await stopPosting();
      await consumer.close();
      await producer.close();
    },
  };
}

/** Waits until events are accepted and delivered that were posted from now on. */
export async function untilServedAgain({
  accepted,
  delivered,
}: Pick<ReturnType<typeof postAndConsume>, "accepted" | "delivered">): Promise<void> {
  const before = new Set(accepted);
  await waitFor(() => [...accepted].some((id) => !before.has(id) && delivered.has(id)), longEnough);
}
