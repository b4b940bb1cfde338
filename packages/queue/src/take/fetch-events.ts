import type { JobJson } from "bullmq";
import type { Redis } from "ioredis";
import { describeNewJob, readFields } from "../events/event-job.ts";
import { damagedCountField } from "../events/job-damage.ts";
import { jobOptionsText } from "../events/job-options.ts";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { databaseField } from "../shards/queue-record.ts";

interface FetchedEvents {
  /** In the order in which they waited. */
  jobs: { json: JobJson; jobId: string }[];
  /**
   * `none`: no event waits any more. `some`: others wait. `ask`: BullMQ must choose the next one, and none was fetched.
   * `closed`: the shard's events are for another database, and none was fetched.
   */
  left: "none" | "some" | "ask" | "closed";
  /** When the first delayed job is due, in epoch milliseconds; 0 if there is none. */
  delayedUntilMs: number;
}

/**
 * Fetches the events that have waited longest, as BullMQ's `moveToActive` does with one job; a test compares the two.
 * Like adding, it does not write to BullMQ's event stream.
 *
 * A shard that has fed another database gives no event. One that has fed none, such as after Redis lost its data, records
 * this one.
 *
 * In all cases where the next job may not be the longest waiting one, BullMQ's `moveToActive` chooses it: a paused
 * queue, a global limit, delayed jobs that are due, priorities.
 *
 * The marker wakes one waiting worker. BullMQ sets it with each job that is fetched. Here it is set only if other events
 * wait, so nobody is woken in vain.
 *
 * KEYS: the queue's wait, active, prioritized, pc (the counter of prioritized jobs), delayed, meta and marker. Some hardly
 * ever exist, so Redis refuses the script while it moves the slot.
 * ARGV: the prefix of job keys, the time (epoch milliseconds), the duration of the locks (milliseconds), the locks'
 * token, the maximum number of events, how many bytes of memory they may take, which only the last one may exceed, the
 * options of our jobs, and the id of the database.
 * Returns what is left, the time of the first delayed job, and for each event its fields and its id; or, of a usual job,
 * four lines (its id, name, subject and timestamp) and its data.
 */
const fetchScript = defineScript(`
local wait, active, prioritized, priorityCounter, delayed, meta, marker = unpack(KEYS)
local prefix, now, lockMs, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local eventsLeft, bytesLeft = tonumber(ARGV[5]), tonumber(ARGV[6])
local paused, concurrency, rateLimit, database =
  unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max', '${databaseField}'))
local function isAnyWaiting() return redis.call('EXISTS', wait, prioritized, priorityCounter) > 0 end

if database and database ~= ARGV[8] then
  -- The worker that is woken instead may be one of the right database.
  if isAnyWaiting() then redis.call('ZADD', marker, 0, '0') end
  return { 'closed', 0 }
end
-- BullMQ's scores are milliseconds followed by 12 bits that order jobs of the same millisecond.
local firstDelayed = tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2])
local isDue = firstDelayed and firstDelayed < (now + 1) * 0x1000
if paused or concurrency or rateLimit or isDue then return { 'ask', 0 } end

-- The key of a job may contain anything. It must not make the script fail, because other events have been moved by
-- then. If Redis refuses for another reason, such as a user's permissions, the script fails: the event stays in the
-- list of active ones, and returns from there when it seems stalled.
local function begin(job)
  local written = redis.pcall('HSET', job, 'processedOn', now)
  if type(written) == 'table' then
    if not string.find(written.err, 'WRONGTYPE', 1, true) then error(written.err) end
    return false
  end
  if type(redis.pcall('HINCRBY', job, 'ats', 1)) == 'table' then
    redis.call('HSET', job, 'ats', 1, '${damagedCountField}', 'ats')
  end
  return true
end

-- Once a script has written something, Redis no longer refuses commands for lack of memory. So the first write is one
-- that needs none: an event must be fetched before it can leave a Redis that has reached maxmemory.
redis.call('ZREM', marker, '0')
if not database then redis.call('HSET', meta, '${databaseField}', ARGV[8]) end

-- A usual job has the fields and values that addJob (add-events.ts) and the first fetch write. The worker knows all but
-- five of them: ioredis takes much longer to decode a field than Redis takes to compare it.
-- Returns two parts of the answer, and how many bytes the data has.
local function describe(id, job)
  local name, subject, data, options, timestamp, delay, priority, starts = unpack(redis.call('HMGET', job,
    'name', 'subject', 'data', 'opts', 'timestamp', 'delay', 'priority', 'ats'))
  local bytes = #(data or '')
  local isUsual = name and subject and data and timestamp and #timestamp <= 15 and options == ARGV[7] and delay == '0'
    and priority == '0' and starts == '1' and redis.call('HLEN', job) == 9
  local lines = isUsual and table.concat({ id, name, subject, timestamp }, '\\n')
  if isUsual and string.find(lines, '^[^\\n]+\\n[^\\n]+\\n[^\\n]*\\n%d+$') then return lines, data, bytes end
  return redis.call('HGETALL', job), id, bytes
end

local answer = { 'some', firstDelayed and firstDelayed / 0x1000 or 0 }
while eventsLeft > 0 and bytesLeft > 0 do
  local id = redis.call('RPOPLPUSH', wait, active)
  if not id then break end
  local job = prefix .. id
  if begin(job) then
    redis.call('SET', job .. ':lock', token, 'PX', lockMs)
    local first, second, bytes = describe(id, job)
    answer[#answer + 1] = first
    answer[#answer + 1] = second
    eventsLeft = eventsLeft - 1
    -- In memory, a character takes at most twice its bytes in UTF-8.
    bytesLeft = bytesLeft - 2 * bytes
  else
    redis.call('LREM', active, 1, id)
  end
end

local hasFetched = #answer > 2
if not isAnyWaiting() then
  answer[1] = 'none'
  return answer
end
redis.call('ZADD', marker, 0, '0')
-- Those that wait have a priority if none was fetched.
return hasFetched and answer or { 'ask', 0 }
`);

/** Limits how long Redis answers nobody else. */
const maxEventsPerCall = 200;

export interface FetchLimits {
  maxEvents: number;
  /** Only the last event may exceed it. */
  maxBytes: number;
}

/**
 * Returns a function that fetches waiting events and locks them.
 *
 * @param token of the locks. Each call needs another one: an event that is fetched again must get another lock
 */
export function createEventFetcher(options: {
  redis: Redis;
  prefix: string;
  lockDurationMs: number;
  /** Returns the id of the database to which the events will be applied. */
  database: () => string;
}): (token: string, limits: FetchLimits) => Promise<FetchedEvents> {
  const { redis, prefix, lockDurationMs, database } = options;
  const queueKey = queueKeys(prefix);
  const keys = ["wait", "active", "prioritized", "pc", "delayed", "meta", "marker"].map(queueKey);
  return async (token, { maxEvents, maxBytes }) => {
    const now = Date.now();
    const [left, delayedUntilMs, ...jobs] = await runScript<FetchAnswer>(redis, fetchScript, keys, [
      queueKey(""),
      now,
      lockDurationMs,
      token,
      Math.min(maxEvents, maxEventsPerCall),
      maxBytes,
      jobOptionsText,
      database(),
    ]);
    return { left, delayedUntilMs, jobs: toJobs(jobs, now) };
  };
}

type FetchAnswer = [left: FetchedEvents["left"], delayedUntilMs: number, ...jobs: (string[] | string)[]];

function toJobs(answer: (string[] | string)[], processedOn: number): FetchedEvents["jobs"] {
  return Array.from({ length: answer.length / 2 }, (_, index) => {
    const [first = "", second = ""] = [answer[2 * index], answer[2 * index + 1] as string];
    if (typeof first !== "string") return { json: readFields(first, second), jobId: second };
    const [jobId = "", name = "", subject = "", timestamp] = first.split("\n");
    return { json: describeNewJob({ name, subject, text: second, timestamp: Number(timestamp), processedOn }), jobId };
  });
}
