import { gatherPerTurn } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { finishedKey } from "../look/queue-state.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

interface FinishedJob {
  jobId: string;
  token: string;
}

/**
 * Removes applied events from the queue. It does what BullMQ's `moveToFinished` does with a completed job that is to be
 * removed and has neither a parent nor a deduplication key; a test compares the two. Like adding, it does not write to
 * BullMQ's event stream.
 *
 * KEYS: the queue's active, stalled and retrying, the number of finished events, and prioritized, which the script does
 * not use and which hardly ever exists: Redis refuses a script with such a key while it moves the slot, so no event on another
 * node seems to be missing.
 * ARGV: the prefix of job keys; then for each event its id and its lock's token.
 * Returns a BullMQ error code for each event, or 0.
 */
const finishScript = defineScript(`
local active, stalled, retrying, finished = unpack(KEYS)
local prefix = ARGV[1]
local finishedCount = 0

local function finish(id, token)
  local job = prefix .. id
  local lock = job .. ':lock'
  if redis.call('EXISTS', job) == 0 then return -1 end
  local holder = redis.call('GET', lock)
  if holder ~= token then return holder and -6 or -2 end
  redis.call('DEL', lock)
  redis.call('SREM', stalled, id)
  redis.call('ZREM', retrying, id)
  if redis.call('LREM', active, -1, id) == 0 then return -3 end
  redis.call('DEL', job, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
    job .. ':unsuccessful')
  finishedCount = finishedCount + 1
  return 0
end

local codes = {}
for place = 2, #ARGV, 2 do codes[#codes + 1] = finish(ARGV[place], ARGV[place + 1]) end
if finishedCount > 0 then redis.call('INCRBY', finished, finishedCount) end
return codes
`);

/** Limits how long Redis answers nobody else. */
const maxEventsPerCall = 50;

/**
 * Returns a function that removes a finished event from the queue, together with the others of the same turn of the
 * event loop. It returns a BullMQ error code, or 0.
 */
export function createEventFinisher(redis: Redis, prefix: string): (job: FinishedJob) => Promise<number> {
  const queueKey = queueKeys(prefix);
  const keys = [...["active", "stalled", retryingName].map(queueKey), finishedKey(prefix), queueKey("prioritized")];
  return gatherPerTurn(
    (jobs: FinishedJob[]) =>
      runScript<number[]>(redis, finishScript, keys, [
        queueKey(""),
        ...jobs.flatMap(({ jobId, token }) => [jobId, token]),
      ]),
    { maxItems: maxEventsPerCall },
  );
}
