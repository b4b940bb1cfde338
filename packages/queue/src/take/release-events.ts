import { gatherPerTurn } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

interface LockedJob {
  jobId: string;
  token: string;
}

/** Limits how long Redis answers nobody else. */
const maxEventsPerCall = 500;

/**
 * Puts events back at the head of the queue in the order in which they were fetched. BullMQ's `moveToWait` moves one
 * job at a time, so the first job put back is served last, and the fold has to correct the order
 * (`move-stalled-events.ts`). Otherwise this does the same for jobs without a priority; a test compares the two. Like
 * adding, it does not write to BullMQ's event stream.
 *
 * An event whose lock is missing, or belongs to another worker, is not moved.
 *
 * KEYS: the queue's wait, active, stalled, meta and marker.
 * ARGV: the prefix of job keys, the maximum number of events to put back; then the id and the lock's token of each
 * event.
 * Returns the number of events put back. The newest are put back first. If the number is the maximum, more may remain.
 */
const releaseEventsScript = defineScript(`
${wakeWorkersInLua}
local wait, active, stalled, meta, marker = unpack(KEYS)
local prefix, maxEvents = ARGV[1], tonumber(ARGV[2])
local tokens = {}
for place = 3, #ARGV, 2 do tokens[ARGV[place]] = ARGV[place + 1] end

local count = 0
-- The newest fetched event is the first in this list.
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

if count > 0 then wakeWorkers(meta, marker) end
return count
`);

/** Returns a function that releases an event, together with the others of the same turn of the event loop. */
export function createEventReleaser(redis: Redis, prefix: string): (job: LockedJob) => Promise<void> {
  const queueKey = queueKeys(prefix);
  const keys = ["wait", "active", "stalled", "meta", "marker"].map(queueKey);
  return gatherPerTurn(async (jobs: LockedJob[]) => {
    const args = [queueKey(""), maxEventsPerCall, ...jobs.flatMap(({ jobId, token }) => [jobId, token])];
    let count: number;
    do {
      count = await runScript<number>(redis, releaseEventsScript, keys, args);
    } while (count === maxEventsPerCall);
    return [];
  });
}
