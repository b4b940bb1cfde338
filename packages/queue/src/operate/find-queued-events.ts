import { bookingReferenceOf } from "@booking-events/schema";
import type { Redis } from "ioredis";
import { subjectOf } from "../events/event-subject.ts";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { findShardCount, type ShardedQueue } from "../shards/for-each-shard.ts";
import { locateShard, shardsOf } from "../shards/shards.ts";
import { type List, lists, type QueuedEvent, readQueuedEvents } from "./read-queued-events.ts";

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
/** Small enough that others wait for Redis about a millisecond. */
const pageSize = 1_000;

/**
 * Finds the events of a booking in the shards of the queue that may have them, at most 11. Redis has no index for that, so this looks at the subject of each event.
 * Events move while it looks: one that moves from a list that is read later to one that was read before is missed.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function findQueuedEvents(
  options: ShardedQueue & { partner: string; reference: string; maxLooked?: number | undefined },
): Promise<QueueSearch> {
  const { partner, reference, maxLooked = defaultMaxLooked } = options;
  const shards = shardsOf(subjectOf(partner, reference), await findShardCount(options));
  const ofShard = Math.ceil(maxLooked / shards.length);
  const searches = await Promise.all(
    shards.map((shard) => {
      const wanted = { ...locateShard(options, shard), partner, reference, maxLooked: ofShard };
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
  partner: string;
  reference: string;
  maxLooked: number;
}

async function search(redis: Redis, wanted: Wanted): Promise<QueueSearch> {
  const queueKey = queueKeys(wanted.prefix);
  const sizes = await Promise.all(
    lists.map(({ name, isSorted }) => (isSorted ? redis.zcard(queueKey(name)) : redis.llen(queueKey(name)))),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const found = new Map<string, QueuedEvent>();
  let looked = 0;
  for (const list of lists) {
    for (let from = 0; looked < wanted.maxLooked && found.size < maxFound; from += pageSize) {
      const page = await readPage(redis, list, { from, size: Math.min(pageSize, wanted.maxLooked - looked) }, wanted);
      for (const event of page.events) found.set(event.eventId, event);
      looked += page.size;
      if (page.size < pageSize) break;
    }
  }
  return { events: [...found.values()], total: Math.max(total, looked), looked };
}

/**
 * Looks at a page of a list or a sorted set, and returns its size, and then the id and the score of each event that has
 * the subject.
 *
 * Events are added at the start and leave at the end. So a page may repeat events of the page before, but leaves none
 * out.
 *
 * KEYS: the list.
 * ARGV: whether it is sorted (1), the first and the last place, the prefix of job keys, the subject.
 */
const lookScript = defineScript(`
local isSorted = ARGV[1] == '1'
local page = isSorted and redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3], 'REV', 'WITHSCORES')
  or redis.call('LRANGE', KEYS[1], ARGV[2], ARGV[3])
local step = isSorted and 2 or 1
local found = { #page / step }
for place = 1, #page, step do
  local subject = redis.pcall('HGET', ARGV[4] .. page[place], 'subject')
  if subject == ARGV[5] then
    found[#found + 1] = page[place]
    found[#found + 1] = isSorted and page[place + 1] or '0'
  end
end
return found
`);

async function readPage(
  redis: Redis,
  list: List,
  { from, size }: { from: number; size: number },
  { prefix, partner, reference }: Wanted,
): Promise<{ size: number; events: QueuedEvent[] }> {
  const { name, isSorted } = list;
  const queueKey = queueKeys(prefix);
  const wanted = subjectOf(partner, reference);
  const args = [isSorted ? 1 : 0, from, from + size - 1, queueKey(""), wanted];
  const [read, ...pairs] = await runScript<[number, ...string[]]>(redis, lookScript, [queueKey(name)], args);
  const ids = pairs.filter((_, index) => index % 2 === 0);
  const found = ids.map((id, index) => ({ id, score: pairs[2 * index + 1] ?? "0" }));
  const events = await readQueuedEvents(redis, prefix, list, found);
  // Two bookings may share a subject by chance.
  const ofBooking = events.filter(
    ({ envelope }) => envelope === null || bookingReferenceOf(envelope.payload) === reference,
  );
  return { size: read, events: ofBooking };
}
