import type { Redis } from "ioredis";
import { gatherPerTurn } from "./gather-per-turn.ts";
import { queueName } from "./queue-name.ts";
import { defineScript, runScript } from "./run-script.ts";

interface LockedJob {
  jobId: string;
  /** Of the lock that this worker holds. */
  token: string;
}

/** Redis answers nobody else meanwhile. */
const maxEventsPerCall = 500;

/**
 * Puts events back at the head of the queue, in the order in which they were fetched: BullMQ's `moveToWait` does it one
 * by one, so that what is given back first is served last. Otherwise it does the same with each job that has no
 * priority; a test compares the two. It leaves out BullMQ's event stream, as adding does.
 *
 * An event whose lock is another's, or is gone, stays where it is.
 *
 * KEYS: the queue's wait, active, stalled, meta and marker.
 * ARGV: the prefix of job keys, how many events may be put back at most; then for each event its id and its lock's token.
 * Returns how many were. The newest are the first to be put back; when they are as many as may be, others may be left.
 */
const giveBackScript = defineScript(`
local wait, active, stalled, meta, marker = unpack(KEYS)
local prefix, maxEvents = ARGV[1], tonumber(ARGV[2])
local tokens = {}
for place = 3, #ARGV, 2 do tokens[ARGV[place]] = ARGV[place + 1] end

local count = 0
-- Each one that was fetched was put in front of those before it.
for _, id in ipairs(redis.call('LRANGE', active, 0, -1)) do
  local job = prefix .. id
  local lock = job .. ':lock'
  if count < maxEvents and tokens[id] and redis.call('GET', lock) == tokens[id] and redis.call('EXISTS', job) == 1 then
    redis.call('DEL', lock)
    redis.call('SREM', stalled, id)
    redis.call('LREM', active, 1, id)
    redis.call('RPUSH', wait, id)
    count = count + 1
  end
end

local paused, concurrency = unpack(redis.call('HMGET', meta, 'paused', 'concurrency'))
local isFull = concurrency and redis.call('LLEN', active) >= tonumber(concurrency)
if count > 0 and not paused and not isFull then redis.call('ZADD', marker, 0, '0') end
return count
`);

/** Makes a function that gives an event back, together with those that are given back in the same turn. */
export function createGiveBack(redis: Redis, prefix: string): (job: LockedJob) => Promise<void> {
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = ["wait", "active", "stalled", "meta", "marker"].map(queueKey);
  return gatherPerTurn(async (jobs: LockedJob[]) => {
    const args = [queueKey(""), maxEventsPerCall, ...jobs.flatMap(({ jobId, token }) => [jobId, token])];
    let count: number;
    do {
      count = await runScript<number>(redis, giveBackScript, keys, args);
    } while (count === maxEventsPerCall);
    return [];
  });
}
