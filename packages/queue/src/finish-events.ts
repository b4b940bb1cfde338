import type { Redis } from "ioredis";
import { gatherPerTurn } from "./gather-per-turn.ts";
import type { HeldEvents } from "./held-events.ts";
import { damagedCountField } from "./job-damage.ts";
import { queueName } from "./queue-name.ts";
import { defineScript, runScript } from "./run-script.ts";

interface FinishedJob {
  jobId: string;
  /** Of the lock that this worker holds. The next job gets a lock with the same one, as BullMQ has it. */
  token: string;
  wantsNext: boolean;
}

/**
 * A job as BullMQ's own scripts return the next one, or two zeros and when the first delayed job is due (epoch
 * milliseconds, 0 when there is none).
 */
type NextJob = [fields: string[] | 0, jobId: string | 0, rateLimitedMs: 0, delayedUntilMs: number];

/** An error code of BullMQ's, 0 when no next job was wanted, or "ask" when BullMQ is to say which one is next. */
type FinishAnswer = number | "ask" | NextJob;

/**
 * Takes applied events out of the queue, and gives each one's worker the event that has waited longest. It does what
 * BullMQ's `moveToFinished` does with a completed job that is to be removed and has neither a parent nor a
 * deduplication key; a test compares the two. It leaves out BullMQ's event stream, as adding does.
 *
 * Whatever makes another job than the longest waiting one the next is left to BullMQ's `moveToActive`: a paused queue, a
 * limit for all workers, delayed jobs that are due, priorities.
 *
 * KEYS: the queue's wait, active, prioritized, pc (the counter of those), stalled, delayed, meta and marker.
 * ARGV: the prefix of job keys, the time (epoch milliseconds), how long the locks of the next jobs hold (milliseconds),
 * how many bytes of memory those may take together, of which the last one may exceed its part; then for each event its id, the token of its lock, and 1 if a next one is wanted.
 * Returns a {@link FinishAnswer} for each.
 */
const finishScript = defineScript(`
local wait, active, prioritized, priorityCounter, stalled, delayed, meta, marker = unpack(KEYS)
local prefix, now, lockMs, bytesLeft = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local paused, concurrency, rateLimit = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
-- BullMQ's scores are milliseconds and 12 bits that tell jobs of one millisecond apart.
local firstDelayed = tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2])
local isDue = firstDelayed and firstDelayed < (now + 1) * 0x1000
local mustAsk = paused or concurrency or rateLimit or isDue
local hasTaken = false

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
  return 0
end

-- Whatever may be in the place of a job: it must not end the script, which has taken others out by then.
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
  -- A character takes as many bytes there as in UTF-8, or less, or twice as many.
  bytesLeft = bytesLeft - 2 * redis.call('HSTRLEN', job, 'data')
  return { redis.call('HGETALL', job), id, 0, 0 }
end

local answers = {}
for place = 5, #ARGV, 3 do
  local id, token, wantsNext = ARGV[place], ARGV[place + 1], ARGV[place + 2] == '1'
  local code = finish(id, token)
  answers[#answers + 1] = code == 0 and wantsNext and takeNext(token) or code
end
if hasTaken then redis.call('ZADD', marker, 0, '0') end
return answers
`);

/**
 * Redis answers nobody else meanwhile. And the sooner the first next events are here, the sooner they can be worked on
 * while Redis is at the others: with all in one call the worker applied a tenth fewer.
 */
const maxEventsPerCall = 50;

/**
 * Makes a function that takes an event which is done out of the queue. Those of one turn of the event loop leave it, and
 * are followed by the next ones, by few calls instead of one each.
 */
export function createEventFinisher(options: {
  redis: Redis;
  prefix: string;
  lockDurationMs: number;
  held: HeldEvents;
}): (job: FinishedJob) => Promise<FinishAnswer> {
  const { redis, prefix, lockDurationMs, held } = options;
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = ["wait", "active", "prioritized", "pc", "stalled", "delayed", "meta", "marker"].map(queueKey);
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
