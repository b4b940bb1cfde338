import { withDeadline } from "@booking-events/runtime";
import { queueKeys } from "../events/queue-name.ts";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { readShardCounts } from "../shards/shard-counts.ts";

/** An event in the queue. */
export interface WaitingEvent {
  /** Null if an operator put the event back. Its dead letter has the partner then. */
  partner: string | null;
}

export interface QueueReader {
  /**
   * Finds an event that waits for a worker or is held by one. An event leaves the queue only after PostgreSQL has it,
   * so whoever looks here first and in PostgreSQL afterwards never misses an accepted event.
   *
   * @param eventId a UUID in lower case
   * @throws if Redis does not answer within {@link readDeadlineMs}
   */
  findEvent(eventId: string): Promise<WaitingEvent | undefined>;
  /** As for a consumer. @throws as above */
  readShardCounts(): Promise<number[]>;
  /** @throws as above */
  ping(): Promise<void>;
  close(): void;
}

/** Leaves the other half of 2 s, in which partners get an answer in an outage, to PostgreSQL. */
export const readDeadlineMs = 800;

/**
 * Creates a reader that changes nothing in the queue, and reads nothing of what partners sent: the job of an event has its
 * id and, in a field of its own, its partner.
 *
 * @param options.onError called for each connection error; ioredis reconnects by itself
 */
export function createQueueReader(options: QueueLocation & { onError: (error: Error) => void }): QueueReader {
  const redis = connectFailingFast(options, options.onError, { connectionName: "booking-events-lookup" });
  return {
    async findEvent(eventId) {
      const reading = redis.hmget(queueKeys(options.prefix)(eventId), "name", "subject");
      const [name, subject] = await withDeadline(reading, readDeadlineMs);
      if (name == null && subject == null) return undefined;
      return { partner: subject?.split(" ", 1)[0] ?? null };
    },
    readShardCounts: () => withDeadline(readShardCounts(redis, options.prefix), readDeadlineMs),
    async ping() {
      await withDeadline(redis.ping(), readDeadlineMs);
    },
    close: () => redis.disconnect(),
  };
}
