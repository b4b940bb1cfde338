import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { wrapContent } from "../events/event-job.ts";
import { isMissing } from "../events/job-damage.ts";
import { queueName } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/** An event that BullMQ has moved to the failed set by itself. */
export interface GivenUpEvent<Delivery> {
  delivery: Delivery;
  /** BullMQ's reason. */
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
if not redis.call('SET', lock, ARGV[2], 'NX', 'PX', ARGV[3]) then return 0 end
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
if redis.call('HEXISTS', KEYS[1], 'trials') == 1 then redis.call('HINCRBY', KEYS[1], 'trials', -1) end
`);

/** KEYS: the job's lock. ARGV: its token. */
const releaseLockScript = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);

/**
 * KEYS: the queue's failed set, the job and its lock.
 * ARGV: the job's id. A job that was put back or replayed in the meantime is kept.
 */
const takeOutScript = defineScript(`
local failed, job, lock = unpack(KEYS)
if redis.call('ZREM', failed, ARGV[1]) == 0 then return 0 end
return redis.call('DEL', job, lock, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
  job .. ':unsuccessful')
`);

/**
 * KEYS: the queue's failed set, wait, active, meta, marker, the job and its lock.
 * ARGV: the job's id.
 */
const putBackScript = defineScript(`
local failed, wait, active, meta, marker, job, lock = unpack(KEYS)
if redis.call('ZREM', failed, ARGV[1]) == 0 then return 0 end
redis.call('HDEL', job, 'defa', 'stc', 'trials', 'failedReason', 'stacktrace', 'finishedOn', 'processedOn')
-- BullMQ counted moving the job to the failed set as an attempt.
if redis.call('HINCRBY', job, 'atm', -1) < 0 then redis.call('HSET', job, 'atm', 0) end
redis.call('DEL', lock)
redis.call('LPUSH', wait, ARGV[1])
local paused, concurrency = unpack(redis.call('HMGET', meta, 'paused', 'concurrency'))
local isFull = concurrency and redis.call('LLEN', active) >= tonumber(concurrency)
if not paused and not isFull then redis.call('ZADD', marker, 0, '0') end
return 1
`);

/**
 * Returns a function that processes the events in BullMQ's failed set.
 *
 * @param options.toDelivery parses a job's fields
 * @param options.onMissingJob called with an id that has no job, which is removed
 */
export function createSweep<Delivery>(options: {
  redis: Redis;
  prefix: string;
  toDelivery: (fields: unknown[], jobId: string) => Delivery;
  onMissingJob: (jobId: string) => void;
}): (sweeping: {
  judge: (event: GivenUpEvent<Delivery>) => Promise<Verdict>;
  /** @returns whether to continue with the other events */
  onFault: (jobId: string, error: unknown) => boolean;
}) => Promise<number> {
  const { redis, prefix, toDelivery, onMissingJob } = options;
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const failed = queueKey("failed");

  async function takeOut(jobId: string): Promise<void> {
    await runScript(redis, takeOutScript, [failed, queueKey(jobId), queueKey(`${jobId}:lock`)], [jobId]);
  }

  async function putBack(jobId: string): Promise<void> {
    const lists = [failed, ...["wait", "active", "meta", "marker"].map(queueKey)];
    await runScript(redis, putBackScript, [...lists, queueKey(jobId), queueKey(`${jobId}:lock`)], [jobId]);
  }

  /** @returns undefined if another process handles the event */
  async function sweepOne(
    jobId: string,
    judge: (event: GivenUpEvent<Delivery>) => Promise<Verdict>,
  ): Promise<Verdict | undefined> {
    const [job, lock] = [queueKey(jobId), queueKey(`${jobId}:lock`)];
    const token = randomUUID();
    const fields = await runScript<unknown[] | 0>(redis, claimScript, [failed, job, lock], [jobId, token, claimMs]);
    if (fields === 0) return undefined;
    try {
      const byName = wrapContent(fields, jobId);
      if (isMissing(byName)) {
        await takeOut(jobId);
        onMissingJob(jobId);
        return "take out";
      }
      const verdict = await judge({
        delivery: toDelivery(fields, jobId),
        reason: String(byName.get("failedReason") ?? ""),
        deaths: Number(byName.get("trials") ?? 0),
        async runTrial(work) {
          if ((await runScript(redis, beginTrialScript, [job, lock], [token, claimMs])) === 0)
            throw new LostClaim("Another process has claimed the event.");
          try {
            return await work();
          } finally {
            await runScript(redis, endTrialScript, [job], []);
          }
        },
      });
      await (verdict === "take out" ? takeOut(jobId) : putBack(jobId));
      return verdict;
    } catch (error) {
      if (error instanceof LostClaim) return undefined;
      throw error;
    } finally {
      await runScript(redis, releaseLockScript, [lock], [token]);
    }
  }

  return async ({ judge, onFault }) => {
    let count = 0;
    // Events that could not be handled stay at the start of the set.
    for (let left = 0; ; ) {
      const jobIds = await redis.zrange(failed, `${left}`, `${left + pageSize - 1}`);
      for (const jobId of jobIds) {
        try {
          if ((await sweepOne(jobId, judge)) === undefined) left += 1;
          else count += 1;
        } catch (error) {
          if (!onFault(jobId, error)) return count;
          left += 1;
        }
      }
      if (jobIds.length < pageSize) return count;
    }
  };
}
