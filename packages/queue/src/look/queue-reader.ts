import { type ServerTime, withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { measureClock } from "../redis/measure-clock.ts";
import { watchOutage } from "../redis/watch-outage.ts";
import { readRecord } from "../shards/queue-record.ts";
import { readShardCounts } from "../shards/shard-counts.ts";
import { locateShard } from "../shards/shards.ts";
import { findWaiting, type WaitingEvents } from "./waiting-events.ts";

export interface WaitingEvent {
  partner: string;
}

export type QueueReader = ReturnType<typeof createQueueReader>;

/** Leaves the other half of 2 s, in which partners get an answer in an outage, to PostgreSQL. */
export const readDeadlineMs = 800;

/**
 * Creates a reader that changes nothing in the queue, and reads nothing of what partners sent: the job of an event has its
 * id and, in a field of its own, its partner. An event's id does not tell its shard, so all of them are asked.
 *
 * @param options.shardCount at least so many. More are asked as soon as senders have recorded that they use more
 */
export function createQueueReader(options: QueueLocation & { shardCount: number; onError: (error: Error) => void }) {
  const first = openShard(options, 0);
  const shards = [first];

  function openUpTo(shardCount: number): void {
    for (let shard = shards.length; shard < shardCount; shard += 1) shards.push(openShard(options, shard));
  }

  openUpTo(options.shardCount);
  return {
    /**
     * Finds an event that waits for a worker or is held by one. An event leaves the queue only after PostgreSQL has it,
     * so whoever looks here first and in PostgreSQL afterwards never misses an accepted event.
     *
     * @param eventId a UUID in lower case
     * @throws if a shard does not answer within {@link readDeadlineMs}, and the event is in none of the others
     */
    async findEvent(eventId: string): Promise<WaitingEvent | undefined> {
      const asked = shards.length;
      const counting = withDeadline(readShardCounts(first.redis, options.prefix), readDeadlineMs);
      const [found, recorded] = await Promise.allSettled([findIn(shards, eventId), counting]);
      if (found.status === "rejected") throw found.reason;
      if (found.value !== undefined) return found.value;
      // The event may be in a shard that is not known yet.
      if (recorded.status === "rejected") throw recorded.reason;
      openUpTo(Math.max(...recorded.value, asked));
      return findIn(shards.slice(asked), eventId);
    },
    /** @throws if a shard does not answer within {@link readDeadlineMs} */
    async findWaiting(): Promise<WaitingEvents> {
      openUpTo(Math.max(...(await withDeadline(readShardCounts(first.redis, options.prefix), readDeadlineMs))));
      return withDeadline(findWaiting(shards), readDeadlineMs);
    },
    /** Returns the database that the queue feeds; null: none yet. @throws if no shard answers in that time */
    async readDatabase(): Promise<string | null> {
      const reading = shards.map(({ redis, prefix }) => withDeadline(readRecord(redis, prefix), readDeadlineMs));
      const results = await Promise.allSettled(reading);
      const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.database] : []));
      if (answers.length === 0) throw new Error("No shard of the queue answers.");
      // Shard 0 comes first, and has the record itself.
      return answers.find((database) => database !== null) ?? null;
    },
    /** Asks the Redis of each shard what time it is. A promise rejects if its shard does not answer. */
    readTimes: (): Promise<ServerTime>[] =>
      shards.map(async ({ redis }) => {
        const { clockAheadMs } = await withDeadline(measureClock(redis, 1), readDeadlineMs);
        return { clockAheadMs, newestEventMs: null };
      }),
    /** Says why the first shard does not answer, in sentences for an operator. */
    describeOutage: first.describeOutage,
    close() {
      for (const { redis } of shards) redis.disconnect();
    },
  };
}

interface Shard {
  redis: Redis;
  prefix: string;
  describeOutage: () => string;
}

function openShard(options: QueueLocation & { onError: (error: Error) => void }, shard: number): Shard {
  const location = locateShard(options, shard);
  const redis = connectFailingFast(location, options.onError, { connectionName: "booking-events-lookup" });
  return { redis, prefix: location.prefix, describeOutage: watchOutage(redis, location.redisServers) };
}

/** @throws if a shard does not answer, and the event is in none of the others */
async function findIn(shards: Shard[], eventId: string): Promise<WaitingEvent | undefined> {
  const searches = shards.map((shard) => findInShard(shard, eventId));
  try {
    return await Promise.any(searches.map(orReject));
  } catch {
    await Promise.all(searches);
    return undefined;
  }
}

async function findInShard({ redis, prefix }: Shard, eventId: string): Promise<WaitingEvent | undefined> {
  const [subject] = await withDeadline(redis.hmget(queueKeys(prefix)(eventId), "subject"), readDeadlineMs);
  const partner = subject?.split(" ", 1)[0];
  return partner === undefined ? undefined : { partner };
}

async function orReject(search: Promise<WaitingEvent | undefined>): Promise<WaitingEvent> {
  const event = await search;
  if (event === undefined) throw new Error("The event is in another shard, or nowhere.");
  return event;
}
