import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { locateShard } from "../shards/shards.ts";
import { createQueueReader, type QueueReader, type WaitingEvent } from "./queue-reader.ts";

/** Reads a queue with any number of shards. An event's id does not tell its shard, so all of them are asked. */
export interface ShardedReader {
  /** As `findEvent` of a {@link QueueReader}. */
  findEvent(eventId: string): Promise<WaitingEvent | undefined>;
  /** @throws if no shard answers */
  ping(): Promise<void>;
  close(): void;
}

/** @param options.shardCount at least so many. More are asked as soon as senders have recorded that they use more */
export function createShardedReader(
  options: QueueLocation & { shardCount: number; onError: (error: Error) => void },
): ShardedReader {
  const first = createQueueReader(locateShard(options, 0));
  const readers = [first];

  function readUpTo(shardCount: number): void {
    for (let shard = readers.length; shard < shardCount; shard += 1)
      readers.push(createQueueReader(locateShard(options, shard)));
  }

  readUpTo(options.shardCount);
  return {
    async findEvent(eventId) {
      const asked = readers.length;
      const [found, recorded] = await Promise.allSettled([findIn(readers, eventId), first.readShardCounts()]);
      if (found.status === "rejected") throw found.reason;
      if (found.value !== undefined) return found.value;
      // The event may be in a shard that is not known yet.
      if (recorded.status === "rejected") throw recorded.reason;
      readUpTo(Math.max(...recorded.value, asked));
      return findIn(readers.slice(asked), eventId);
    },
    ping: () => Promise.any(readers.map((reader) => reader.ping())),
    close() {
      for (const reader of readers) reader.close();
    },
  };
}

/** @throws if a shard does not answer, and the event is in none of the others */
async function findIn(readers: QueueReader[], eventId: string): Promise<WaitingEvent | undefined> {
  const searches = readers.map((reader) => reader.findEvent(eventId));
  try {
    return await Promise.any(searches.map(orReject));
  } catch {
    await Promise.all(searches);
    return undefined;
  }
}

async function orReject(search: Promise<WaitingEvent | undefined>): Promise<WaitingEvent> {
  const event = await search;
  if (event === undefined) throw new Error("The event is in another shard, or nowhere.");
  return event;
}
