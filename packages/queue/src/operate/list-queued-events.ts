import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { findShardCount, type ShardedQueue } from "../shards/for-each-shard.ts";
import { locateShard, shardNumbers } from "../shards/shards.ts";
import { type List, lists, type QueuedEvent, readQueuedEvents } from "./read-queued-events.ts";

export interface QueueListing<Kept> {
  events: Kept[];
  /** How many events were in the queue, and how many of them were looked at. */
  total: number;
  looked: number;
}

/** In each list of each shard. */
const defaultMaxLooked = 100_000;
/** Small enough that others wait for Redis about a millisecond. */
const pageSize = 1_000;
/** Events are read in groups of this many: at most 6.4 MB with the default limit of a body. */
const eventsPerRead = 100;

export interface QueueFilter {
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
    partner,
    state,
    code,
    limit,
    maxLooked = defaultMaxLooked,
  }: QueueFilter & { keep: (event: QueuedEvent) => Kept[] },
  listing: QueueListing<Kept>,
): Promise<void> {
  const queueKey = queueKeys(prefix);
  for (const list of lists) {
    if (state !== undefined && list.state !== state) continue;
    const key = queueKey(list.name);
    const total = list.isSorted ? await redis.zcard(key) : await redis.llen(key);
    const found: Found[] = [];
    let looked = 0;
    // The oldest events are at the end of a list. A sorted set has another order, so all of it is looked at.
    while (looked < Math.min(total, maxLooked) && (list.isSorted || found.length < limit)) {
      const page = await readPage(redis, { key, list, from: looked, prefix: queueKey(""), partner, code });
      found.push(...page.found);
      looked += page.size;
      if (page.size < pageSize) break;
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

interface Found {
  id: string;
  score: string;
  queuedAt: number;
}

/**
 * KEYS: the list or sorted set.
 * ARGV: whether it is sorted (1), the first and the last place, the prefix of job keys, the beginning of the subjects and
 * that of the reasons why the last attempts failed.
 * Returns the size of the page, and then the id, the score and the time of each such event.
 */
const pageScript = defineScript(`
local isSorted = ARGV[1] == '1'
local from, to = tonumber(ARGV[2]), tonumber(ARGV[3])
local page = isSorted and redis.call('ZRANGE', KEYS[1], from, to, 'WITHSCORES')
  or redis.call('LRANGE', KEYS[1], -to - 1, -from - 1)
local step = isSorted and 2 or 1
local found = { #page / step }
for index = 1, #page, step do
  -- The oldest of a list is its last.
  local place = isSorted and index or #page + 1 - index
  local job = ARGV[4] .. page[place]
  local subject = redis.pcall('HGET', job, 'subject')
  if type(subject) ~= 'string' then subject = '' end
  local reason = ARGV[6] ~= '' and redis.pcall('HGET', job, 'failedReason') or ''
  if type(reason) ~= 'string' then reason = '' end
  if string.sub(subject, 1, #ARGV[5]) == ARGV[5] and string.sub(reason, 1, #ARGV[6]) == ARGV[6] then
    local queuedAt = redis.pcall('HGET', job, 'timestamp')
    found[#found + 1] = page[place]
    found[#found + 1] = isSorted and page[place + 1] or '0'
    found[#found + 1] = type(queuedAt) == 'string' and queuedAt or '0'
  end
end
return found
`);

async function readPage(
  redis: Redis,
  {
    key,
    list,
    from,
    prefix,
    partner,
    code,
  }: { key: string; list: List; from: number; prefix: string } & Pick<QueueFilter, "partner" | "code">,
): Promise<{ size: number; found: Found[] }> {
  const start = partner === undefined ? "" : `${partner} `;
  const args = [list.isSorted ? 1 : 0, from, from + pageSize - 1, prefix, start, code === undefined ? "" : `${code}:`];
  const [size, ...texts] = await runScript<[number, ...string[]]>(redis, pageScript, [key], args);
  const found: Found[] = [];
  for (let at = 0; at < texts.length; at += 3) {
    const [id = "", score = "0", queuedAt] = texts.slice(at, at + 3);
    found.push({ id, score, queuedAt: Number(queuedAt) });
  }
  return { size, found };
}
