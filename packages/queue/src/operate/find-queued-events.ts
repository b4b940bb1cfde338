import { bookingReferenceOf } from "@booking-events/schema";
import type { Redis } from "ioredis";
import { subjectOf } from "../events/event-subject.ts";
import { countList, lists } from "../events/lists.ts";
import { withConnection } from "../redis/with-connection.ts";
import { findShardCount, type ShardedQueue } from "../shards/for-each-shard.ts";
import { locateShard, shardsOf } from "../shards/shards.ts";
import { type QueuedEvent, readQueuedEvents } from "./read-queued-events.ts";
import { walkList } from "./walk-list.ts";

export interface QueueSearch {
  events: QueuedEvent[];
  /** How many events were in the queue, and how many of them were looked at. */
  total: number;
  looked: number;
}

/** As many as may wait with the default of `MAX_BACKLOG`. */
const defaultMaxLooked = 1_000_000;
/** The search ends after this many events of the booking. More say nothing new, and need memory. */
const maxFound = 1_000;

/**
 * Finds the events of a booking in the shards of the queue that may have them, at most 11. Redis has no index for that, so this looks at the subject of each event.
 * Events move while it looks: one that moves from a list that is read later to one that was read before is missed.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function findQueuedEvents(
  options: ShardedQueue & { partner: string; reference: string; isTest?: boolean; maxLooked?: number | undefined },
): Promise<QueueSearch> {
  const { partner, reference, isTest = false, maxLooked = defaultMaxLooked } = options;
  const subject = subjectOf(partner, reference, isTest);
  const shards = shardsOf(subject, await findShardCount(options));
  const ofShard = Math.ceil(maxLooked / shards.length);
  const searches = await Promise.all(
    shards.map((shard) => {
      const wanted = { ...locateShard(options, shard), subject, reference, isTest, maxLooked: ofShard };
      return withConnection(wanted, (redis) => search(redis, wanted));
    }),
  );
  return {
    events: searches.flatMap(({ events }) => events),
    total: searches.reduce((sum, { total }) => sum + total, 0),
    looked: searches.reduce((sum, { looked }) => sum + looked, 0),
  };
}

interface Wanted {
  prefix: string;
  subject: string;
  reference: string;
  isTest: boolean;
  maxLooked: number;
}

async function search(redis: Redis, { prefix, subject, reference, isTest, maxLooked }: Wanted): Promise<QueueSearch> {
  const sizes = await Promise.all(lists.map((list) => countList(redis, prefix, list)));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const found = new Map<string, QueuedEvent>();
  let looked = 0;
  for (const list of lists) {
    if (found.size >= maxFound) break;
    const wanted = { prefix, list, subjectStart: subject, isTest, maxLooked: maxLooked - looked };
    for await (const page of walkList(redis, { ...wanted, from: "newest" })) {
      for (const event of await readQueuedEvents(redis, prefix, list, page.found))
        if (isOfBooking(event, reference)) found.set(event.eventId, event);
      looked += page.size;
      if (found.size >= maxFound) break;
    }
  }
  return { events: [...found.values()], total: Math.max(total, looked), looked };
}

/** Two bookings may share a subject by chance. */
function isOfBooking({ envelope }: QueuedEvent, reference: string): boolean {
  return envelope === null || bookingReferenceOf(envelope.payload) === reference;
}
