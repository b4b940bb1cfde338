import type { Redis } from "ioredis";
import { damagedCountField } from "../events/job-damage.ts";
import { queueKeys } from "../events/queue-name.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/**
 * Puts the events of dead workers back at the head of the queue, and marks active events for the next check. It does
 * what BullMQ's `moveStalledJobsToWait` does, except that BullMQ puts them back in the order of a hash table, and this
 * keeps the order in which they were fetched. A test compares the two. The fold would correct another order, but an event
 * that comes after later ones of its booking leaves no change of its own: in measurements, half of the changes of a booking
 * with many events were missing from the feed after four workers had been killed.
 *
 * The locks of one worker do not all expire at the same time, and events put back later are placed before the others.
 * So while some marked events still have their locks, all of them wait for the next check and no others are marked.
 * Within the duration of a lock, each of these locks expires or is renewed by a live worker.
 *
 * A key that expires later than it ever should was set before Redis' clock was set back. It counts as expired: otherwise
 * the events of a dead worker would wait for as long as the step was. A live worker renews its locks before the next
 * check.
 *
 * It does not write to BullMQ's event stream, but trims it, as BullMQ does here for all of its scripts.
 *
 * KEYS: the queue's wait, active, stalled, meta, marker, stalled-check and events.
 * ARGV: the prefix of job keys, the time (epoch milliseconds), the time until the next check (milliseconds), how often
 * a job may stall, the duration of a lock (milliseconds).
 * Returns the ids of the events put back, the newest first.
 */
const moveStalledScript = defineScript(`
${wakeWorkersInLua}
local wait, active, stalled, meta, marker, check, events = unpack(KEYS)
local prefix, now, intervalMs, maxStalledCount = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local lockDurationMs = tonumber(ARGV[5])
local function isValid(key, longestMs)
  local leftMs = redis.call('PTTL', key)
  return leftMs ~= -2 and leftMs <= longestMs
end
if isValid(check, intervalMs) then return {} end
local isSetBack = redis.call('EXISTS', check) == 1
-- First a write that needs no memory: see fetch-events.ts.
redis.call('DEL', check)
redis.call('SET', check, now, 'PX', intervalMs)
if isSetBack then return {} end
redis.call('XTRIM', events, 'MAXLEN', '~', redis.call('HMGET', meta, 'opts.maxLenEvents')[1] or 10000)

local isMarked = {}
for _, id in ipairs(redis.call('SMEMBERS', stalled)) do isMarked[id] = true end
local moved, left = {}, {}
local isAnyLocked = false
-- The newest fetched event is the first in this list.
for _, id in ipairs(redis.call('LRANGE', active, 0, -1)) do
  local isLocked = isValid(prefix .. id .. ':lock', lockDurationMs)
  if isMarked[id] and isLocked then isAnyLocked = true end
  table.insert(isMarked[id] and not isLocked and moved or left, id)
end
if #moved > 0 and isAnyLocked then return {} end

-- A count that is not a number would make every script that increments it fail. A key that is not a job at all is of no
-- use. If Redis refuses for another reason, such as a user's permissions, the script fails and the events stay.
local function makeCountable(job)
  local names = { 'ats', 'atm', 'stc' }
  local counts = redis.pcall('HMGET', job, unpack(names))
  if counts.err then
    if not string.find(counts.err, 'WRONGTYPE', 1, true) then error(counts.err) end
    return false
  end
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
-- Lua's stack holds about 8,000 values.
for first = 1, #left, 5000 do
  redis.call('SADD', stalled, unpack(left, first, math.min(first + 4999, #left)))
end

if #moved > 0 then wakeWorkers(meta, marker) end
return moved
`);

export interface StalledOptions {
  maxStalledCount: number;
  stalledCheckIntervalMs: number;
  lockDurationMs: number;
}

/** Returns a function that replaces BullMQ's own search for stalled jobs. */
export function createStalledMover(
  redis: Redis,
  prefix: string,
  { maxStalledCount, stalledCheckIntervalMs, lockDurationMs }: StalledOptions,
): () => Promise<string[]> {
  const queueKey = queueKeys(prefix);
  const keys = ["wait", "active", "stalled", "meta", "marker", "stalled-check", "events"].map(queueKey);
  return async () => {
    const args = [queueKey(""), Date.now(), stalledCheckIntervalMs, maxStalledCount, lockDurationMs];
    return runScript<string[]>(redis, moveStalledScript, keys, args);
  };
}
