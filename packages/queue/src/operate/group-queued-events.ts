import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { findShardCount, forEachShard, type ShardedQueue, valuesOf } from "../shards/for-each-shard.ts";
import { type List, lists, type QueuedEvent, toAttemptTime } from "./read-queued-events.ts";

/** Events in the queue that are in the same state and, if they failed, for the same reason. */
export interface QueuedGroup {
  state: QueuedEvent["state"];
  /** Why the last attempt of delayed events failed. Null: of the others. */
  code: string | null;
  count: number;
  /** When the first of them is tried again. */
  nextAttemptAt: Date | null;
}

export interface QueuedGroups {
  groups: QueuedGroup[];
  /** How many events were in the queue, and how many of them were looked at, or counted without a look. */
  total: number;
  looked: number;
}

/** In each list of each shard. */
const maxLooked = 20_000;
/** Small enough that others wait for Redis about a millisecond. */
const pageSize = 1_000;

/**
 * Counts the events in the queue by their state, and the delayed ones by the code with which their last attempt failed.
 *
 * @param options.partner undefined: of all
 * @throws what ioredis throws when a shard does not answer within 2 s
 */
export async function groupQueuedEvents(
  options: ShardedQueue & { partner?: string | undefined },
): Promise<QueuedGroups> {
  const shardCount = await findShardCount(options);
  const results = await forEachShard({ ...options, shardCount }, (location) =>
    withConnection(location, (redis) => groupShard(redis, location.prefix, options.partner)),
  );
  const shards = valuesOf(results);
  const groups = new Map<string, QueuedGroup>();
  for (const group of shards.flatMap((shard) => shard.groups)) {
    const key = `${group.state} ${group.code ?? ""}`;
    const known = groups.get(key);
    groups.set(key, known === undefined ? group : join(known, group));
  }
  return {
    groups: [...groups.values()].filter(({ count }) => count > 0),
    total: shards.reduce((sum, { total }) => sum + total, 0),
    looked: shards.reduce((sum, { looked }) => sum + looked, 0),
  };
}

function join(one: QueuedGroup, other: QueuedGroup): QueuedGroup {
  const times = [one.nextAttemptAt, other.nextAttemptAt].filter((time) => time !== null);
  const earliest = times.sort((first, second) => first.getTime() - second.getTime())[0] ?? null;
  return { ...one, count: one.count + other.count, nextAttemptAt: earliest };
}

async function groupShard(redis: Redis, prefix: string, partner: string | undefined): Promise<QueuedGroups> {
  const shard: QueuedGroups = { groups: [], total: 0, looked: 0 };
  for (const list of lists) {
    const key = queueKeys(prefix)(list.name);
    const total = list.isSorted ? await redis.zcard(key) : await redis.llen(key);
    shard.total += total;
    if (partner === undefined && list.state !== "delayed") {
      shard.groups.push({ state: list.state, code: null, count: total, nextAttemptAt: null });
      shard.looked += total;
    } else await groupList(redis, { prefix, list, total, partner }, shard);
  }
  return shard;
}

/**
 * KEYS: the list or sorted set.
 * ARGV: whether it is sorted (1), the first and the last place, the prefix of job keys, the beginning of the subjects.
 * Returns the size of the page, and then each code, with how many events have it and the lowest score.
 */
const groupScript = defineScript(`
local isSorted = ARGV[1] == '1'
local from, to = tonumber(ARGV[2]), tonumber(ARGV[3])
local page = isSorted and redis.call('ZRANGE', KEYS[1], from, to, 'WITHSCORES')
  or redis.call('LRANGE', KEYS[1], -to - 1, -from - 1)
local step = isSorted and 2 or 1
local counts, scores, codes = {}, {}, {}
for place = 1, #page, step do
  local job = ARGV[4] .. page[place]
  local subject = ARGV[5] ~= '' and redis.pcall('HGET', job, 'subject') or ''
  if type(subject) == 'string' and string.sub(subject, 1, #ARGV[5]) == ARGV[5] then
    local reason = redis.pcall('HGET', job, 'failedReason')
    local code = type(reason) == 'string' and string.match(reason, '^([%w_-]+):') or ''
    if not counts[code] then
      counts[code], scores[code] = 0, isSorted and page[place + 1] or '0'
      codes[#codes + 1] = code
    end
    counts[code] = counts[code] + 1
  end
end
local answer = { #page / step }
for _, code in ipairs(codes) do
  answer[#answer + 1] = code
  answer[#answer + 1] = counts[code]
  answer[#answer + 1] = scores[code]
end
return answer
`);

interface ListToGroup {
  prefix: string;
  list: List;
  total: number;
  partner: string | undefined;
}

async function groupList(
  redis: Redis,
  { prefix, list, total, partner }: ListToGroup,
  shard: QueuedGroups,
): Promise<void> {
  const queueKey = queueKeys(prefix);
  const isDelayed = list.state === "delayed";
  const start = partner === undefined ? "" : `${partner} `;
  let looked = 0;
  while (looked < Math.min(total, maxLooked)) {
    const args = [list.isSorted ? 1 : 0, looked, looked + pageSize - 1, queueKey(""), start];
    const [size, ...entries] = await runScript<[number, ...(string | number)[]]>(
      redis,
      groupScript,
      [queueKey(list.name)],
      args,
    );
    for (let at = 0; at < entries.length; at += 3) {
      const [code, count, score] = entries.slice(at, at + 3);
      shard.groups.push({
        state: list.state,
        code: isDelayed ? String(code) || null : null,
        count: Number(count),
        nextAttemptAt: isDelayed ? toAttemptTime(String(score)) : null,
      });
    }
    looked += size;
    if (size < pageSize) break;
  }
  shard.looked += looked;
}
