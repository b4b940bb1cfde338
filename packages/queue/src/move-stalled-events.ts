import type { Redis } from "ioredis";
import { damagedCountField } from "./job-damage.ts";
import { queueName } from "./queue-name.ts";
import { defineScript, runScript } from "./run-script.ts";

/**
 * Puts the events of workers that died back at the head of the queue, and marks those that are active to be looked at
 * next time. It does what BullMQ's `moveStalledJobsToWait` does, which puts them back in the order of a hash table: this
 * keeps the order in which they were fetched. A test compares the two.
 *
 * The locks of one worker do not all expire at once, and what goes back later goes in front. So while some of the marked
 * events still have their locks, all of them wait for the next look, and no others are marked: within the time that a
 * lock holds, each of these has expired, or was renewed by a worker that lives.
 *
 * It writes nothing to BullMQ's event stream, but
 * keeps it short, as BullMQ does here for all of its scripts.
 *
 * Jobs that are repeated by a schedule may stall as often as they like; a queue that has any is left to BullMQ.
 *
 * KEYS: the queue's wait, active, stalled, meta, marker, stalled-check, events and repeat.
 * ARGV: the prefix of job keys, the time (epoch milliseconds), until the next look (milliseconds), how often a job may
 * stall. Returns the ids of those that were put back, the newest first, or "ask" when BullMQ is to do it.
 */
const moveStalledScript = defineScript(`
local wait, active, stalled, meta, marker, check, events, schedules = unpack(KEYS)
local prefix, now, intervalMs, maxStalledCount = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if redis.call('EXISTS', schedules) == 1 then return 'ask' end
if redis.call('EXISTS', check) == 1 then return {} end
redis.call('SET', check, now, 'PX', intervalMs)
local paused, concurrency, maxEvents = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'opts.maxLenEvents'))
redis.call('XTRIM', events, 'MAXLEN', '~', maxEvents or 10000)

local isMarked = {}
for _, id in ipairs(redis.call('SMEMBERS', stalled)) do isMarked[id] = true end
local moved, left = {}, {}
local isAnyLocked = false
-- Each one that was fetched was put in front of those before it.
for _, id in ipairs(redis.call('LRANGE', active, 0, -1)) do
  local isLocked = redis.call('EXISTS', prefix .. id .. ':lock') == 1
  if isMarked[id] and isLocked then isAnyLocked = true end
  table.insert(isMarked[id] and not isLocked and moved or left, id)
end
if #moved > 0 and isAnyLocked then return {} end

-- A count that is no number would end each script that raises it. What is no job at all is of no use to anyone.
local function makeCountable(job)
  local names = { 'ats', 'atm', 'stc' }
  local counts = redis.pcall('HMGET', job, unpack(names))
  if counts.err then return false end
  for place, name in ipairs(names) do
    local count = counts[place]
    if count and (#count > 9 or not string.match(count, '^%d+$')) then
      redis.call('HSET', job, name, 0, '${damagedCountField}', name)
    end
  end
  return true
end

redis.call('DEL', stalled)
local movable = {}
for _, id in ipairs(moved) do
  redis.call('LREM', active, 1, id)
  if makeCountable(prefix .. id) then table.insert(movable, id) end
end
moved = movable
for _, id in ipairs(moved) do
  local job = prefix .. id
  if redis.call('HINCRBY', job, 'stc', 1) > maxStalledCount then
    redis.call('HSET', job, 'defa', 'job stalled more than allowable limit')
  end
  redis.call('RPUSH', wait, id)
end
-- Lua's stack has room for about 8,000 values.
for first = 1, #left, 5000 do
  redis.call('SADD', stalled, unpack(left, first, math.min(first + 4999, #left)))
end

local isFull = concurrency and #left >= tonumber(concurrency)
if #moved > 0 and not paused and not isFull then redis.call('ZADD', marker, 0, '0') end
return moved
`);

export interface StalledOptions {
  maxStalledCount: number;
  stalledCheckIntervalMs: number;
}

/** Makes what takes the place of BullMQ's own search; it returns undefined when BullMQ is to search by itself. */
export function createStalledMover(
  redis: Redis,
  prefix: string,
  { maxStalledCount, stalledCheckIntervalMs }: StalledOptions,
): () => Promise<string[] | undefined> {
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = ["wait", "active", "stalled", "meta", "marker", "stalled-check", "events", "repeat"].map(queueKey);
  return async () => {
    const args = [queueKey(""), Date.now(), stalledCheckIntervalMs, maxStalledCount];
    const answer = await runScript<string[] | "ask">(redis, moveStalledScript, keys, args);
    return answer === "ask" ? undefined : answer;
  };
}
