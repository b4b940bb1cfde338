import type { Redis } from "ioredis";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";

/** Limits how long Redis answers nobody else. */
const eventsPerCall = 500;

/**
 * Does what BullMQ's `promote` does with each event that is still delayed, in the given order. An event that a worker
 * takes, finishes or delays at the same time is never in two places, because one script moves it.
 *
 * KEYS: the queue's delayed, wait, meta and marker.
 * ARGV: the prefix of job keys, the code that the last attempt must have failed with, or nothing; then the ids.
 * Returns how many were moved.
 */
const promoteScript = defineScript(`
${wakeWorkersInLua}
local delayed, wait, meta, marker = unpack(KEYS)
local prefix, start = ARGV[1], ARGV[2] .. ':'

local function hasFailedSo(id)
  if start == ':' then return true end
  local reason = redis.pcall('HGET', prefix .. id, 'failedReason')
  return type(reason) == 'string' and string.sub(reason, 1, #start) == start
end

local count = 0
for place = 3, #ARGV do
  local id = ARGV[place]
  if hasFailedSo(id) and redis.call('ZREM', delayed, id) == 1 then
    redis.pcall('HSET', prefix .. id, 'delay', '0')
    redis.call('LPUSH', wait, id)
    count = count + 1
  end
end
if count > 0 then wakeWorkers(meta, marker) end
return count
`);

export interface RetriedNow {
  /** How many events wait for a worker now, instead of for their next attempt. */
  retried: number;
  /** How many still wait for their next attempt. */
  delayed: number;
}

/**
 * Lets the events of a shard that wait for their next attempt wait for a worker instead, the oldest first. Each is moved
 * once at most, also if it fails again in the meantime. It is safe while workers run, and to do it again.
 *
 * @param options.code only those whose last attempt failed with it
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function retryNow(options: QueueLocation & { code?: string | undefined }): Promise<RetriedNow> {
  const { prefix, code = "" } = options;
  const queueKey = queueKeys(prefix);
  const keys = ["delayed", "wait", "meta", "marker"].map(queueKey);
  return withConnection(options, async (redis) => {
    let retried = 0;
    for await (const ids of readRetrying(redis, queueKey(retryingName)))
      retried += await runScript<number>(redis, promoteScript, keys, [queueKey(""), code, ...ids]);
    return { retried, delayed: await redis.zcard(queueKey("delayed")) };
  });
}

/** Reads all ids, the oldest event first. Each page begins with the time that the page before ended with. */
async function* readRetrying(redis: Redis, key: string): AsyncGenerator<string[]> {
  let from = "-inf";
  let known = new Set<string>();
  for (;;) {
    const size = eventsPerCall + known.size;
    const page = await redis.zrange(key, from, "+inf", "BYSCORE", "LIMIT", 0, size, "WITHSCORES");
    const entries = Array.from({ length: page.length / 2 }, (_, index) => [page[2 * index], page[2 * index + 1]]);
    const fresh = entries.flatMap(([id = ""]) => (known.has(id) ? [] : [id]));
    if (fresh.length > 0) yield fresh;
    if (entries.length < size) return;
    const last = entries.at(-1)?.[1] ?? from;
    const ofLast = entries.flatMap(([id = "", score]) => (score === last ? [id] : []));
    known = last === from ? new Set([...known, ...ofLast]) : new Set(ofLast);
    from = last;
  }
}
