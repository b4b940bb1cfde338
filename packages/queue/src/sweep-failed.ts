import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { wrapContent } from "./event-job.ts";
import { isGone } from "./job-damage.ts";
import { queueName } from "./queue-name.ts";
import { defineScript, runScript } from "./run-script.ts";

/** An event that BullMQ has given up by itself. */
export interface GivenUpEvent<Delivery> {
  delivery: Delivery;
  /** What BullMQ says of it. */
  reason: string;
  /** How many trials have not come to an end: each time, the process died that tried it, alone. */
  deaths: number;
  /**
   * Runs `work`, which counts as a death if it does not come to an end, well or not.
   *
   * @throws LostClaim when another process may be trying the event by now; what `work` throws
   */
  runTrial<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** `take out`: the event is safe elsewhere. `put back`: it is to be delivered again, as if it had not been given up. */
export type Verdict = "take out" | "put back";

/**
 * Another process may have claimed the event meanwhile, since it took longer than a claim holds, such as an outage of
 * PostgreSQL. It stays among those that failed.
 */
export class LostClaim extends Error {
  override name = "LostClaim";
}

const pageSize = 100;
/** Longer than an event takes that is tried alone. Until then no other process looks at it. */
const claimMs = 60_000;

/**
 * An event is claimed by the lock that BullMQ gives to active ones: two processes that sweep never have the same.
 *
 * KEYS: the queue's failed, the job and its lock. ARGV: the id, the lock's token, how long it holds (milliseconds).
 * Returns the job's fields; 0 when another process has claimed it, or it is not among those that failed any more.
 */
const claimScript = defineScript(`
local failed, job, lock = unpack(KEYS)
if not redis.call('ZSCORE', failed, ARGV[1]) then return 0 end
if not redis.call('SET', lock, ARGV[2], 'NX', 'PX', ARGV[3]) then return 0 end
local fields = redis.pcall('HGETALL', job)
return fields.err and {} or fields
`);

/** KEYS: the job and its lock. ARGV: the lock's token, how long it holds from now on. Returns 1 if it is still held. */
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
const releaseScript = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);

/** KEYS: the queue's failed, the job and its lock. ARGV: the id. What was put back or replayed meanwhile stays. */
const takeOutScript = defineScript(`
local failed, job, lock = unpack(KEYS)
if redis.call('ZREM', failed, ARGV[1]) == 0 then return 0 end
return redis.call('DEL', job, lock, job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed',
  job .. ':unsuccessful')
`);

/** KEYS: the queue's failed, wait, active, meta, marker, the job and its lock. ARGV: the id. */
const putBackScript = defineScript(`
local failed, wait, active, meta, marker, job, lock = unpack(KEYS)
if redis.call('ZREM', failed, ARGV[1]) == 0 then return 0 end
redis.call('HDEL', job, 'defa', 'stc', 'trials', 'failedReason', 'stacktrace', 'finishedOn', 'processedOn')
-- BullMQ has counted that it gave the event up as an attempt.
if redis.call('HINCRBY', job, 'atm', -1) < 0 then redis.call('HSET', job, 'atm', 0) end
redis.call('DEL', lock)
redis.call('LPUSH', wait, ARGV[1])
local paused, concurrency = unpack(redis.call('HMGET', meta, 'paused', 'concurrency'))
local isFull = concurrency and redis.call('LLEN', active) >= tonumber(concurrency)
if not paused and not isFull then redis.call('ZADD', marker, 0, '0') end
return 1
`);

/**
 * Makes the function that goes through the events that BullMQ has given up.
 *
 * @param options.toDelivery reads a job from its fields
 * @param options.onGone told of an id that has no job: it is taken out
 */
export function createSweep<Delivery>(options: {
  redis: Redis;
  prefix: string;
  toDelivery: (fields: unknown[], jobId: string) => Delivery;
  onGone: (jobId: string) => void;
}): (sweeping: {
  judge: (event: GivenUpEvent<Delivery>) => Promise<Verdict>;
  /** @returns whether to go on with the others */
  onFault: (jobId: string, error: unknown) => boolean;
}) => Promise<number> {
  const { redis, prefix, toDelivery, onGone } = options;
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const failed = queueKey("failed");

  async function takeOut(jobId: string): Promise<void> {
    await runScript(redis, takeOutScript, [failed, queueKey(jobId), queueKey(`${jobId}:lock`)], [jobId]);
  }

  async function putBack(jobId: string): Promise<void> {
    const lists = [failed, ...["wait", "active", "meta", "marker"].map(queueKey)];
    await runScript(redis, putBackScript, [...lists, queueKey(jobId), queueKey(`${jobId}:lock`)], [jobId]);
  }

  /** @returns undefined when another process deals with it */
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
      if (isGone(byName)) {
        await takeOut(jobId);
        onGone(jobId);
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
      await runScript(redis, releaseScript, [lock], [token]);
    }
  }

  return async ({ judge, onFault }) => {
    let count = 0;
    // Those that could not be dealt with stay in front of the others.
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
