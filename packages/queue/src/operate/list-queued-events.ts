import type { Redis } from "ioredis";
import { countList, lists } from "../events/lists.ts";
import { withConnection } from "../redis/with-connection.ts";
import { findShardCount, type ShardedQueue } from "../shards/for-each-shard.ts";
import { locateShard, shardNumbers } from "../shards/shards.ts";
import { type QueuedEvent, readQueuedEvents } from "./read-queued-events.ts";
import { type QueuedPlace, walkList } from "./walk-list.ts";

export interface QueueListing<Kept> {
  events: Kept[];
  /** How many events were in the queue, and how many of them were looked at. */
  total: number;
  looked: number;
}

/** In each list of each shard. */
const defaultMaxLooked = 100_000;
/** Events are read in groups of this many: at most 6.4 MB with the default limit of a body. */
const eventsPerRead = 100;

export interface QueueFilter {
  /** Only events of test partners. Default: only the others. */
  isTest?: boolean | undefined;
  /** Undefined: of all. */
  partner?: string | undefined;
  /** Undefined: in any state. */
  state?: QueuedEvent["state"] | undefined;
  /** Only events whose last attempt failed with this code. */
  code?: string | undefined;
  /** Of events from each list. */
  limit: number;
  /** Of events in each list of each shard. */
  maxLooked?: number | undefined;
}

/**
 * Lists the events that have been in each list of the queue for longest. Events move while it looks, so one may be
 * missed.
 *
 * @param keep what is wanted of each. Some thousands of whole events may be more than a process has memory for
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function listQueuedEvents<Kept>(
  options: ShardedQueue & QueueFilter,
  keep: (event: QueuedEvent) => Kept[],
): Promise<QueueListing<Kept>> {
  const listing: QueueListing<Kept> = { events: [], total: 0, looked: 0 };
  for (const shard of shardNumbers(await findShardCount(options))) {
    const location = locateShard({ ...options }, shard);
    await withConnection(location, (redis) => listShard(redis, location.prefix, { ...options, keep }, listing));
  }
  return listing;
}

async function listShard<Kept>(
  redis: Redis,
  prefix: string,
  {
    keep,
    isTest = false,
    partner,
    state,
    code,
    limit,
    maxLooked = defaultMaxLooked,
  }: QueueFilter & { keep: (event: QueuedEvent) => Kept[] },
  listing: QueueListing<Kept>,
): Promise<void> {
  const subjectStart = partner === undefined ? "" : `${partner} `;
  for (const list of lists) {
    if (state !== undefined && list.state !== state) continue;
    const total = await countList(redis, prefix, list);
    const found: QueuedPlace[] = [];
    let looked = 0;
    for await (const page of walkList(redis, { prefix, list, subjectStart, isTest, from: "oldest", maxLooked })) {
      found.push(...page.found.filter((place) => code === undefined || place.code === code));
      looked += page.size;
      // A sorted set has another order, so all of it is looked at.
      if (!list.isSorted && found.length >= limit) break;
    }
    const oldest = found.sort((one, other) => one.queuedAt - other.queuedAt).slice(0, limit);
    for (let from = 0; from < oldest.length; from += eventsPerRead) {
      const events = await readQueuedEvents(redis, prefix, list, oldest.slice(from, from + eventsPerRead));
      listing.events.push(...events.flatMap(keep));
    }
    listing.total += Math.max(total, looked);
    listing.looked += looked;
  }
}
