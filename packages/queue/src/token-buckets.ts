import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";

/** A token comes every 1 / perSecond seconds until the bucket holds `burst`. */
interface BucketSize {
  perSecond: number;
  burst: number;
}

interface TakenTokens {
  /** As many as were wanted, or as many as there were. */
  granted: number;
  /** In the bucket now. */
  left: number;
  /** Until the next token comes, if less was granted than was wanted. */
  waitMs: number;
}

export interface TokenBuckets {
  /**
   * Takes up to `wanted` tokens, at least 1, out of a bucket that all processes share.
   *
   * @throws when Redis refuses, or has not answered in time
   */
  take(id: string, size: BucketSize, wanted: number): Promise<TakenTokens>;
  /** How many processes share the buckets, as Redis last said; 1 before it has said so. */
  processCount(): number;
  close(): void;
}

const defaultDeadlineMs = 100;

/** How often a process notes that it is alive. */
const noteIntervalMs = 1_000;
/** A process that has not noted itself for so long is not counted: several notes may fail. */
const noteValidS = 10;

const connectTimeoutMs = 1_500;
/** A Redis that vanished without closing the connection is given up after this long without a byte. */
const socketTimeoutMs = 5_000;
const longestReconnectDelayMs = 500;

/**
 * A bucket is the time at which it will be full again (GCRA): one key, which expires when it is. All times are
 * microseconds of Redis' clock, so that the clocks of the ingest hosts don't matter. The expiry is a time too, not a
 * duration: Redis counts a duration in whole milliseconds, since 7.2 from when the script began, and a bucket whose key
 * is gone before it is full gives a whole burst.
 *
 * What lies further ahead than an empty bucket comes from a clock that was set back, or a limit that was raised, and
 * counts as an empty bucket; it has to be written, or the bucket would stay empty until that time. Half a
 * microsecond is allowed for, since the stored time is rounded.
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
 * One sorted set of the processes, by the second of Redis' clock in which they last noted themselves. Those that are
 * too old are gone, or come from a clock that was set forward; those ahead of now, from one that was set back. Who is
 * alive is back in it within a second.
 */
const noteScript = `
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + 1, '+inf')
return redis.call('ZCARD', KEYS[1])
`;

/**
 * A connection of their own: on one connection Redis answers in order, so that an event would wait behind a token, and
 * a token behind an event.
 *
 * @param prefix the queue's prefix, so that the buckets live in the same slot as the queue
 * @param onError told of each connection error; ioredis reconnects by itself
 * @param deadlineMs how long Redis may take to give tokens
 */
export function createTokenBuckets(options: {
  redisUrl: string;
  prefix: string;
  onError: (error: Error) => void;
  deadlineMs?: number;
}): TokenBuckets {
  const { deadlineMs = defaultDeadlineMs } = options;
  const redis = new Redis(options.redisUrl, {
    connectionName: "booking-events-ingest-limits",
    enableOfflineQueue: false,
    connectTimeout: connectTimeoutMs,
    socketTimeout: socketTimeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 50, longestReconnectDelayMs),
  });
  redis.on("error", options.onError);
  const processId = randomUUID();
  let processes = 1;

  /** While it fails, the last count stays in force. */
  async function noteProcess(): Promise<void> {
    try {
      processes = Number(await redis.eval(noteScript, 1, `${options.prefix}:ingests`, processId, noteValidS));
    } catch (error) {
      options.onError(error as Error);
    }
  }

  redis.on("ready", noteProcess);
  const timer = setInterval(noteProcess, noteIntervalMs).unref();

  return {
    async take(id, { perSecond, burst }, wanted) {
      const key = `${options.prefix}:rate-limit:${id}`;
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
 * Not ioredis' commandTimeout: after a pause of this process timers run first, so that it would give up an answer that
 * has long been there. setImmediate lets the answer be read before.
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
