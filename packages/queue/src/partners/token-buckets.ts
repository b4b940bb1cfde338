import { randomUUID } from "node:crypto";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** A token is added every 1 / perSecond seconds until the bucket has `burst` tokens. */
interface BucketSize {
  perSecond: number;
  burst: number;
}

interface TakenTokens {
  /** The number of wanted tokens, or fewer if there were fewer. */
  granted: number;
  /** The tokens left in the bucket. */
  left: number;
  /** The time until the next token is added, if fewer were granted than wanted. */
  waitMs: number;
}

export interface TokenBuckets {
  /**
   * Takes up to `wanted` tokens, at least 1, from a bucket that all processes share.
   *
   * @throws if Redis refuses or does not answer in time
   */
  take(id: string, size: BucketSize, wanted: number): Promise<TakenTokens>;
  /** The number of processes that share the buckets, as last reported by Redis; 1 until then. */
  processCount(): number;
  close(): void;
}

const defaultDeadlineMs = 100;

/** How often a process records that it is alive. */
const heartbeatIntervalMs = 1_000;
/** A process is no longer counted after this time without a record. Several records may fail. */
const heartbeatValidS = 10;

/**
 * A bucket is stored as the time at which it will be full again (GCRA), in a key that expires at that time. All times
 * are microseconds of Redis' clock, so the clocks of the ingest hosts do not matter. The expiry is a time and not a
 * duration, because Redis counts durations in whole milliseconds, since 7.2 from the start of the script. A key that
 * disappeared before its bucket is full would grant a whole burst.
 *
 * A time further ahead than an empty bucket comes from a clock that was set back or a limit that was raised, and counts
 * as an empty bucket. It must be overwritten, or the bucket would stay empty until that time. The script allows for
 * half a microsecond because the stored time is rounded.
 */
const takeScript = `
local interval = tonumber(ARGV[1])
local capacity = interval * ARGV[2]
local wanted = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ahead = math.max(tonumber(redis.call('GET', KEYS[1]) or '0') - now, 0)
local missing = math.min(ahead, capacity)
local there = math.floor((capacity - missing + 0.5) / interval)
local granted = math.min(wanted, there)
missing = missing + granted * interval
if missing ~= ahead then
  local full = string.format('%.0f', now + missing)
  redis.call('SET', KEYS[1], full, 'PXAT', string.format('%.0f', math.ceil(full / 1000)))
end
return { granted, there - granted, math.ceil(math.max(missing + interval - capacity, 0)) }
`;

/**
 * A sorted set of the processes by the second of Redis' clock in which each last recorded itself. Entries that are too
 * old belong to processes that have ended, or come from a clock that was set forward. Entries in the future come from a
 * clock that was set back. A living process is back in the set within a second.
 */
const heartbeatScript = `
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + 1, '+inf')
return redis.call('ZCARD', KEYS[1])
`;

/** The processes that share buckets. A partner has a bucket in each group: questions take no tokens from its events. */
type BucketGroup = "ingests" | "lookups";

/**
 * Creates the buckets with their own connection. Redis answers in order on one connection, so events and tokens would
 * otherwise wait for each other.
 *
 * @param options.group whose buckets they are. Default: those of ingests
 * @param options.onError called for each connection error; ioredis reconnects by itself
 * @param options.deadlineMs how long Redis may take to grant tokens
 */
export function createTokenBuckets(
  options: QueueLocation & { group?: BucketGroup; onError: (error: Error) => void; deadlineMs?: number },
): TokenBuckets {
  const { group = "ingests", deadlineMs = defaultDeadlineMs } = options;
  const scope = group === "ingests" ? "" : `${group}:`;
  const prefix = companionPrefix(options.prefix, "limits");
  const redis = connectFailingFast({ ...options, prefix }, options.onError, {
    connectionName: `booking-events-limits-of-${group}`,
    maxRetriesPerRequest: 0,
  });
  const processId = randomUUID();
  let processes = 1;

  /** While this fails, the last count applies. */
  async function sendHeartbeat(): Promise<void> {
    try {
      const reply = await redis.eval(heartbeatScript, 1, `${prefix}:${group}`, processId, heartbeatValidS);
      processes = Number(reply);
    } catch (error) {
      options.onError(error as Error);
    }
  }

  redis.on("ready", sendHeartbeat);
  const timer = setInterval(sendHeartbeat, heartbeatIntervalMs).unref();

  return {
    async take(id, { perSecond, burst }, wanted) {
      const key = `${prefix}:rate-limit:${scope}${id}`;
      const taking = redis.eval(takeScript, 1, key, 1_000_000 / perSecond, burst, wanted);
      const reply = await beforeDeadline(taking, deadlineMs);
      const [granted, left, waitMicroseconds] = reply as [number, number, number];
      return { granted, left, waitMs: waitMicroseconds / 1_000 };
    },
    processCount: () => processes,
    close() {
      clearInterval(timer);
      redis.disconnect();
    },
  };
}

/**
 * Counts the ingests that are running.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function countIngests(queue: QueueLocation): Promise<number> {
  const prefix = companionPrefix(queue.prefix, "limits");
  return withConnection({ ...queue, prefix }, async (redis) => {
    const [seconds] = (await redis.time()) as unknown as [string, string];
    return redis.zcount(`${prefix}:ingests`, Number(seconds) - heartbeatValidS, "+inf");
  });
}

/**
 * Not ioredis' commandTimeout: after a pause of this process timers run first, so it would discard an answer that has
 * already arrived. setImmediate lets the answer be read first.
 */
async function beforeDeadline<Result>(work: Promise<Result>, deadlineMs: number): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new Error(`Redis gave no tokens within ${deadlineMs} ms.`));
  const timer = setTimeout(() => setImmediate(giveUp), deadlineMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
