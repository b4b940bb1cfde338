import type { Redis } from "ioredis";
import { gatherPerTurn } from "./gather-per-turn.ts";
import type { HeldEvents } from "./held-events.ts";
import { damagedCountField } from "./job-damage.ts";
import { queueName } from "./queue-name.ts";
import { finishedKey } from "./queue-state.ts";
import { defineScript, runScript } from "./run-script.ts";

interface FinishedJob {
  jobId: string;
  /** The token of the lock that this worker holds. As in BullMQ, the lock of the next job gets the same token. */
  token: string;
  wantsNext: boolean;
}

/**
 * The next job as BullMQ's scripts return it; or two zeros and the time at which the first delayed job is due (epoch
 * milliseconds, 0 if there is none).
 */
type NextJob = [fields: string[] | 0, jobId: string | 0, rateLimitedMs: 0, delayedUntilMs: number];

/** A BullMQ error code, 0 if no next job was requested, or "ask" if BullMQ must choose the next job. */
type FinishAnswer = number | "ask" | NextJob;

/**
 * Removes applied events from the queue, and fetches the longest waiting event for each one's worker. It does what
 * BullMQ's `moveToFinished` does with a completed job that is to be removed and has neither a parent nor a
 * deduplication key; a test compares the two. Like adding, it does not write to BullMQ's event stream.
 *
 * In all cases where the next job may not be the longest waiting one, BullMQ's `moveToActive` chooses it: a paused
 * queue, a global limit, delayed jobs that are due, priorities.
 *
 * KEYS: the queue's wait, active, prioritized, pc (the counter of prioritized jobs), stalled, delayed, meta and marker, and the
 * number of finished events.
 * ARGV: the prefix of job keys, the time (epoch milliseconds), the duration of the next jobs' locks (milliseconds), how
 * many bytes of memory the next jobs may take together, which only the last one may exceed; then for each event its id,
 * its lock's token, and 1 if a next event is requested.
 * Returns a {@link FinishAnswer} for each event.
 */
const finishScript = defineScript(`
local wait, active, prioritized, priorityCounter, stalled, delayed, meta, marker, finished = unpack(KEYS)
local prefix, now, lockMs, bytesLeft = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local paused, concurrency, rateLimit = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
-- BullMQ's scores are milliseconds followed by 12 bits that order jobs of the same millisecond.
local firstDelayed = tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2])
local isDue = firstDelayed and firstDelayed < (now + 1) * 0x1000
local mustAsk = paused or concurrency or rateLimit or isDue
local hasTaken = false
local finishedCount = 0

local function finish(id, token)
  local job = prefix .. id
  local lock = job .. ':lock'
  if redis.call('EXISTS', job) == 0 then return -1 end
  local holder = redis.call('GET', lock)
  if holder ~= token then return holder and -6 or -2 end
  redis.call('DEL', lock)
  redis.call('SREM', stalled, id)
  if redis.call('LREM', active, -1, id) == 0 then return -3 end
  redis.call('DEL', job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
    job .. ':unsuccessful')
  finishedCount = finishedCount + 1
  return 0
end

-- The key of a job may contain anything. It must not make the script fail, because other events have been removed by
-- then.
local function begin(job)
  local written = redis.pcall('HSET', job, 'processedOn', now)
  if type(written) == 'table' then return false end
  if type(redis.pcall('HINCRBY', job, 'ats', 1)) == 'table' then
    redis.call('HSET', job, 'ats', 1, '${damagedCountField}', 'ats')
  end
  return true
end

local function takeNext(token)
  if bytesLeft <= 0 then return 0 end
  if mustAsk then return 'ask' end
  local id = redis.call('RPOPLPUSH', wait, active)
  if not id then
    if redis.call('EXISTS', prioritized, priorityCounter) > 0 then return 'ask' end
    return { 0, 0, 0, firstDelayed and firstDelayed / 0x1000 or 0 }
  end
  hasTaken = true
  local job = prefix .. id
  redis.call('SET', job .. ':lock', token, 'PX', lockMs)
  if not begin(job) then
    redis.call('LREM', active, 1, id)
    redis.call('DEL', job .. ':lock')
    return takeNext(token)
  end
  -- In memory, a character takes at most twice its bytes in UTF-8.
  bytesLeft = bytesLeft - 2 * redis.call('HSTRLEN', job, 'data')
  return { redis.call('HGETALL', job), id, 0, 0 }
end

local answers = {}
for place = 5, #ARGV, 3 do
  local id, token, wantsNext = ARGV[place], ARGV[place + 1], ARGV[place + 2] == '1'
  local code = finish(id, token)
  answers[#answers + 1] = code == 0 and wantsNext and takeNext(token) or code
end
if finishedCount > 0 then redis.call('INCRBY', finished, finishedCount) end
if hasTaken then redis.call('ZADD', marker, 0, '0') end
return answers
`);

/**
 * Limits how long Redis answers nobody else. Smaller calls also return the first next events sooner, so they can be
 * processed while Redis handles the others: with a single call, the worker applied 10 % fewer events.
 */
const maxEventsPerCall = 50;

/**
 * Returns a function that removes a finished event from the queue. The events of one turn of the event loop are
 * removed, and the next ones fetched, with few calls instead of one each.
 */
export function createEventFinisher(options: {
  redis: Redis;
  prefix: string;
  lockDurationMs: number;
  held: HeldEvents;
}): (job: FinishedJob) => Promise<FinishAnswer> {
  const { redis, prefix, lockDurationMs, held } = options;
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = ["wait", "active", "prioritized", "pc", "stalled", "delayed", "meta", "marker"]
    .map(queueKey)
    .concat(finishedKey(prefix));
  return gatherPerTurn(
    (jobs: FinishedJob[]) =>
      held.fetchSome((maxBytes) =>
        runScript<FinishAnswer[]>(redis, finishScript, keys, [
          ...[queueKey(""), Date.now(), lockDurationMs, maxBytes],
          ...jobs.flatMap(({ jobId, token, wantsNext }) => [jobId, token, wantsNext ? 1 : 0]),
        ]),
      ),
    { maxItems: maxEventsPerCall },
  );
}
