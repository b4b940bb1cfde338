import { digestSubject, queueName } from "@booking-events/queue";
import { jobOptions } from "@booking-events/queue/job-options";
import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { v7 } from "uuid";

const eventsPerAdd = 1_000;

/** Puts the envelopes into a queue in this order, whatever their sequences, and otherwise as ingest does. */
export async function fillQueue(redisUrl: string, prefix: string, envelopes: readonly EventEnvelope[]): Promise<void> {
  const connection = new Redis(redisUrl);
  const queue = new Queue(queueName, { connection, prefix });
  for (let start = 0; start < envelopes.length; start += eventsPerAdd) {
    const added = envelopes.slice(start, start + eventsPerAdd);
    await queue.addBulk(added.map((data) => ({ name: data.kind, data, opts: { ...jobOptions, jobId: data.eventId } })));
    // BullMQ adds no job to a key that exists, so this comes second.
    const pipeline = connection.pipeline();
    for (const envelope of added)
      pipeline.hset(`${prefix}:${queueName}:${envelope.eventId}`, "subject", digestSubject(envelope));
    await pipeline.exec();
  }
  await queue.close();
  connection.disconnect();
}

/** Recent, since an event from before the horizon expires. */
export const firstReceivedAtMs = Date.now() - 24 * 60 * 60 * 1_000;

/** @param index determines the event's place in the order; no two events may have the same */
export function createEnvelope(
  index: number,
  event: Pick<EventEnvelope, "kind" | "payload"> & { reference: string; idempotencyKey?: string },
): EventEnvelope {
  const { kind, reference, payload, idempotencyKey = null } = event;
  const receivedAtMs = firstReceivedAtMs + index;
  return {
    ...{ version: envelopeVersion, eventId: v7({ msecs: receivedAtMs }), kind, partner: "acme", idempotencyKey },
    ...{ sequence: receivedAtMs * 1_000, receivedAt: new Date(receivedAtMs).toISOString() },
    payload: { ...payload, consumerTripPartnerExternalReference: reference, consumerTripVenueName: `Venue ${index}` },
  };
}
