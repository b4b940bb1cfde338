import { addNumberedEvents } from "@booking-events/queue/add/add-numbered-events";
import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import { Redis } from "ioredis";
import { v7 } from "uuid";

const eventsPerAdd = 100;

/** Puts the envelopes into a queue in this order, whatever their sequences. Their jobs are like those of ingest. */
export async function fillQueue(redisUrl: string, prefix: string, envelopes: readonly EventEnvelope[]): Promise<void> {
  const redis = new Redis(redisUrl);
  for (let start = 0; start < envelopes.length; start += eventsPerAdd)
    await addNumberedEvents(redis, prefix, envelopes.slice(start, start + eventsPerAdd));
  redis.disconnect();
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
    version: envelopeVersion,
    eventId: v7({ msecs: receivedAtMs }),
    kind,
    partner: "acme",
    idempotencyKey,
    sequence: receivedAtMs * 1_000,
    receivedAt: new Date(receivedAtMs).toISOString(),
    payload: { ...payload, consumerTripPartnerExternalReference: reference, consumerTripVenueName: `Venue ${index}` },
  };
}
