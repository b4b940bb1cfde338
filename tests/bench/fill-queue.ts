import { randomFillSync } from "node:crypto";
import { digestSubject, maxAttempts, queueName } from "@booking-events/queue";
import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import { Queue } from "bullmq";
import { Redis } from "ioredis";

const eventsPerAdd = 1_000;

/** Puts the envelopes into a queue in this order, each as ingest does. */
export async function fillQueue(redisUrl: string, prefix: string, envelopes: readonly EventEnvelope[]): Promise<void> {
  const connection = new Redis(redisUrl);
  const queue = new Queue(queueName, { connection, prefix });
  for (let start = 0; start < envelopes.length; start += eventsPerAdd) {
    const added = envelopes.slice(start, start + eventsPerAdd);
    await queue.addBulk(
      added.map((data) => ({
        name: data.kind,
        data,
        opts: { jobId: data.eventId, attempts: maxAttempts, backoff: { type: "custom" }, removeOnComplete: true },
      })),
    );
    // BullMQ adds nothing where there is a key already, so this comes second.
    const pipeline = connection.pipeline();
    for (const envelope of added)
      pipeline.hset(`${prefix}:${queueName}:${envelope.eventId}`, "subject", digestSubject(envelope));
    await pipeline.exec();
  }
  await queue.close();
  connection.disconnect();
}

/** @param index makes it another event: its id, its place in the order, its idempotency key if it has one */
export function createEnvelope(
  index: number,
  {
    kind,
    reference,
    idempotencyKey = null,
    payload,
  }: {
    kind: EventEnvelope["kind"];
    reference: string;
    idempotencyKey?: string | null;
    payload: Readonly<Record<string, string>>;
  },
): EventEnvelope {
  const receivedAtMs = firstReceivedAtMs + index;
  return {
    version: envelopeVersion,
    eventId: toEventId(receivedAtMs),
    kind,
    partner: "acme",
    sequence: receivedAtMs * 1_000,
    receivedAt: new Date(receivedAtMs).toISOString(),
    idempotencyKey,
    payload: { ...payload, consumerTripPartnerExternalReference: reference, consumerTripVenueName: `Venue ${index}` },
  };
}

const firstReceivedAtMs = Date.UTC(2026, 10, 20);

/** A UUIDv7. */
function toEventId(timeMs: number): string {
  const random = Buffer.from(randomFillSync(new Uint8Array(10))).toString("hex");
  const time = timeMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`;
}
