import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { type EventQueue, wrapContent } from "../events/event-job.ts";
import { isMissing } from "../events/job-damage.ts";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { type Delivery, toFailedDelivery } from "./delivery.ts";

/** An event that BullMQ has moved to the failed set by itself. */
export interface GivenUpEvent {
  delivery: Delivery;
  reason: string;
  /** The number of trials that did not end because the process that tried the event alone died. */
  deaths: number;
  /**
   * Runs `work` as a trial. If it neither returns nor throws, it counts as a death.
   *
   * @throws LostClaim if another process may have started to try the event; what `work` throws
   */
  runTrial<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** `take out`: the event is stored elsewhere. `put back`: it is to be delivered again as if it had never failed. */
export type Verdict = "take out" | "put back";

/**
 * Another process may have claimed the event because its processing took longer than the claim lasts, for example in an
 * outage of PostgreSQL. The event stays in the failed set.
 */
export class LostClaim extends Error {
  override name = "LostClaim";
}

const pageSize = 100;
/** How long no other process touches the event. Longer than trying an event alone takes. */
const claimMs = 60_000;

/**
 * Claims an event with the lock that BullMQ uses for active jobs, so two sweeping processes never have the same event.
 *
 * KEYS: the queue's failed set, the job and its lock.
 * ARGV: the job's id, the lock's token, the lock's duration in milliseconds.
 * Returns the job's fields, or 0 if another process has claimed the job or it is no longer in the failed set.
 */
const claimScript = defineScript(`
local failed, job, lock = unpack(KEYS)
if not redis.call('ZSCORE', failed, ARGV[1]) then return 0 end
if redis.call('EXISTS', lock) == 1 then return 0 end
-- First a write that needs no memory: see fetch-events.ts.
redis.call('DEL', lock)
redis.call('SET', lock, ARGV[2], 'PX', ARGV[3])
local fields = redis.pcall('HGETALL', job)
return fields.err and {} or fields
`);

/**
 * KEYS: the job and its lock.
 * ARGV: the lock's token, the lock's new duration in milliseconds.
 * Returns 1 if the lock is still held.
 */
const beginTrialScript = defineScript(`
local job, lock = unpack(KEYS)
if redis.call('GET', lock) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', lock, ARGV[2])
redis.call('HINCRBY', job, 'trials', 1)
return 1
`);

/** KEYS: the job. */
const endTrialScript = defineScript(`
local trials = redis.call('HGET', KEYS[1], 'trials')
if not trials then return end
redis.call('HDEL', KEYS[1], 'trials')
redis.call('HSET', KEYS[1], 'trials', trials - 1)
`);

/** KEYS: the job's lock. ARGV: its token. */
const releaseLockScript = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);

/**
 * KEYS: the queue's failed set and retrying, the job and its lock.
 * ARGV: the job's id. A job that was put back or replayed in the meantime is kept.
 */
const takeOutScript = defineScript(`
local failed, retrying, job, lock = unpack(KEYS)
if redis.call('ZREM', failed, ARGV[1]) == 0 then return 0 end
redis.call('ZREM', retrying, ARGV[1])
return redis.call('DEL', job, lock, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
  job .. ':unsuccessful')
`);

/**
 * KEYS: the queue's failed set, wait, meta, marker, the job and its lock.
 * ARGV: the job's id.
 */
const putBackScript = defineScript(`
${wakeWorkersInLua}
local failed, wait, meta, marker, job, lock = unpack(KEYS)
if redis.call('ZREM', failed, ARGV[1]) == 0 then return 0 end
redis.call('HDEL', job, 'defa', 'stc', 'trials', 'failedReason', 'stacktrace', 'finishedOn', 'processedOn')
-- BullMQ counted moving the job to the failed set as an attempt.
if redis.call('HINCRBY', job, 'atm', -1) < 0 then redis.call('HSET', job, 'atm', 0) end
redis.call('DEL', lock)
redis.call('LPUSH', wait, ARGV[1])
wakeWorkers(meta, marker)
return 1
`);

interface SweptQueue {
  redis: Redis;
  prefix: string;
  queue: EventQueue;
  /** Called with an id that has no job, which is removed. */
  onMissingJob: (jobId: string) => void;
}

export interface Sweeping {
  judge: (event: GivenUpEvent) => Promise<Verdict>;
  /** Called with what `judge` threw. @returns whether to continue with the other events */
  onFault: (jobId: string, error: unknown) => boolean;
}

/**
 * Processes the events in BullMQ's failed set.
 *
 * @returns the number of handled events
 */
export async function sweepFailed(swept: SweptQueue, { judge, onFault }: Sweeping): Promise<number> {
  let count = 0;
  // Events that could not be handled stay at the start of the set.
  for (let left = 0; ; ) {
    const jobIds = await swept.redis.zrange(toKey(swept, "failed"), `${left}`, `${left + pageSize - 1}`);
    for (const jobId of jobIds) {
      try {
        if ((await sweepOne(swept, jobId, judge)) === undefined) left += 1;
        else count += 1;
      } catch (error) {
        if (!onFault(jobId, error)) return count;
        left += 1;
      }
    }
    if (jobIds.length < pageSize) return count;
  }
}

/** @returns undefined if another process handles the event */
async function sweepOne(swept: SweptQueue, jobId: string, judge: Sweeping["judge"]): Promise<Verdict | undefined> {
  const { redis } = swept;
  const [failed, job, lock] = [toKey(swept, "failed"), toKey(swept, jobId), toKey(swept, `${jobId}:lock`)];
  const token = randomUUID();
  const fields = await runScript<unknown[] | 0>(redis, claimScript, [failed, job, lock], [jobId, token, claimMs]);
  if (fields === 0) return undefined;
  try {
    const byName = wrapContent(fields, jobId);
    if (isMissing(byName)) {
      await takeOut(swept, jobId);
      swept.onMissingJob(jobId);
      return "take out";
    }
    const verdict = await judge({
      delivery: toFailedDelivery(swept.queue, fields, jobId),
      reason: String(byName.get("failedReason") ?? ""),
      deaths: Number(byName.get("trials") ?? 0),
      runTrial: (work) => runTrial(swept, jobId, token, work),
    });
    await (verdict === "take out" ? takeOut(swept, jobId) : putBack(swept, jobId));
    return verdict;
  } catch (error) {
    if (error instanceof LostClaim) return undefined;
    throw error;
  } finally {
    await runScript(redis, releaseLockScript, [lock], [token]);
  }
}

async function runTrial<Result>(
  swept: SweptQueue,
  jobId: string,
  token: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const [job, lock] = [toKey(swept, jobId), toKey(swept, `${jobId}:lock`)];
  const isOurs = (await runScript(swept.redis, beginTrialScript, [job, lock], [token, claimMs])) === 1;
  if (!isOurs) throw new LostClaim("Another process has claimed the event.");
  try {
    return await work();
  } finally {
    await runScript(swept.redis, endTrialScript, [job], []);
  }
}

async function takeOut(swept: SweptQueue, jobId: string): Promise<void> {
  const keys = ["failed", retryingName, jobId, `${jobId}:lock`].map((name) => toKey(swept, name));
  await runScript(swept.redis, takeOutScript, keys, [jobId]);
}

async function putBack(swept: SweptQueue, jobId: string): Promise<void> {
  const keys = ["failed", "wait", "meta", "marker", jobId, `${jobId}:lock`].map((name) => toKey(swept, name));
  await runScript(swept.redis, putBackScript, keys, [jobId]);
}

function toKey({ prefix }: SweptQueue, name: string): string {
  return queueKeys(prefix)(name);
}
