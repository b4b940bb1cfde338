import { randomUUID } from "node:crypto";
import { withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { recordAlive } from "../redis/record-alive.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
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
  /** The tokens left in the bucket, with fractions. Below zero, it owes them. */
  left: number;
  /** Of payloads that all processes have accepted today, in UTC by Redis' clock. */
  bytesToday: number;
  dayEndsInS: number;
}

export interface UsedLimits {
  /** Requests that would pass now, besides those for which ingests have taken tokens in advance. */
  available: number;
  bytesToday: number;
  /** When the quota of bytes begins again. */
  dayEndsAt: Date;
}

export interface TokenBuckets {
  /**
   * Takes `debt` tokens from a bucket that all processes share, even if that leaves it below zero, and then up to
   * `wanted` of those that are there.
   *
   * @param bytes of payloads that were accepted, to be counted
   * @throws if Redis refuses or does not answer in time
   */
  take(id: string, size: BucketSize, wanted: number, debt?: number, bytes?: number): Promise<TakenTokens>;
  /**
   * Reads how much a partner's events have used of its limits, and takes nothing.
   *
   * @throws as above
   */
  look(id: string, size: BucketSize): Promise<UsedLimits>;
  /** The number of processes that share the buckets, as last reported by Redis; 1 until then. */
  processCount(): number;
  close(): void;
}

const defaultDeadlineMs = 100;
const lookDeadlineMs = 800;

/** How often a process records that it is alive. */
const heartbeatIntervalMs = 1_000;
/** A process is no longer counted after this time without a record. Several records may fail. */
const heartbeatValidS = 10;

/**
 * A bucket is stored as its tokens and the time at which it had them, in a key that expires when the bucket is full. All
 * times are microseconds of Redis' clock, so the clocks of the ingest hosts do not matter. The expiry is a time and not
 * a duration, because Redis counts durations in whole milliseconds, since 7.2 from the start of the script. A key that
 * disappeared before its bucket is full would grant a whole burst.
 *
 * A time in the future comes from a clock that was set back: the bucket has what it had. The script allows for a
 * millionth of a token because the sum of fractions may be less than a whole one.
 *
 * The bytes of today expire when the day ends. The time of expiry is set with each count, so a clock that was wrong
 * matters only until the next one.
 *
 * KEYS: the bucket, the bytes of today. ARGV: the tokens added in a microsecond, the burst, the tokens wanted, the tokens
 * owed, the bytes to be counted.
 */
const takeScript = defineScript(`
local rate, burst, wanted, debt = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tokens = burst
local stored = redis.call('GET', KEYS[1])
if stored then
  local had, at = string.match(stored, '(%S+) (%S+)')
  tokens = math.min(burst, had + math.max(now - at, 0) * rate)
end
tokens = tokens - debt
local granted = math.min(wanted, math.max(math.floor(tokens + 0.000001), 0))
tokens = tokens - granted
local full = now + (burst - tokens) / rate
redis.call('SET', KEYS[1], string.format('%.17g %.0f', tokens, now), 'PXAT', string.format('%.0f', math.ceil(full / 1000)))
local day_ends = (math.floor(time[1] / 86400) + 1) * 86400
local bytes
if tonumber(ARGV[5]) > 0 then
  bytes = redis.call('INCRBY', KEYS[2], ARGV[5])
  redis.call('EXPIREAT', KEYS[2], day_ends)
else
  bytes = tonumber(redis.call('GET', KEYS[2]) or 0)
end
return { granted, string.format('%.6f', tokens), bytes, day_ends - time[1] }
`);

/** The processes that share buckets. A partner has a bucket in each group: questions take no tokens from its events. */
type BucketGroup = "ingests" | "lookups";

/**
 * Creates the buckets with their own connection. Redis answers in order on one connection, so events and tokens would
 * otherwise wait for each other.
 *
 * @param options.group whose buckets they are. Default: those of ingests
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
      processes = await recordAlive(redis, `${prefix}:${group}`, processId, heartbeatValidS);
    } catch (error) {
      options.onError(error as Error);
    }
  }

  redis.on("ready", sendHeartbeat);
  const timer = setInterval(sendHeartbeat, heartbeatIntervalMs).unref();

  return {
    async take(id, { perSecond, burst }, wanted, debt = 0, bytes = 0) {
      const keys = [`${prefix}:rate-limit:${scope}${id}`, bytesKey(prefix, `${scope}${id}`)];
      const args = [perSecond / 1_000_000, burst, wanted, debt, bytes];
      const taking = runScript<[number, string, number, number]>(redis, takeScript, keys, args);
      const [granted, left, bytesToday, dayEndsInS] = await withDeadline(taking, deadlineMs);
      return { granted, left: Number(left), bytesToday, dayEndsInS };
    },
    look: (id, size) => withDeadline(lookInto(redis, prefix, id, size), lookDeadlineMs),
    processCount: () => processes,
    close() {
      clearInterval(timer);
      redis.disconnect();
    },
  };
}

const daySeconds = 24 * 60 * 60;

async function lookInto(
  redis: Redis,
  prefix: string,
  id: string,
  { perSecond, burst }: BucketSize,
): Promise<UsedLimits> {
  const [stored, bytes, time] = await Promise.all([
    redis.get(`${prefix}:rate-limit:${id}`),
    redis.get(bytesKey(prefix, id)),
    redis.time() as unknown as Promise<[seconds: string, microseconds: string]>,
  ]);
  const [seconds, microseconds] = time.map(Number) as [number, number];
  const [had = burst, atMicroseconds = 0] = (stored ?? "").split(" ").filter(Boolean).map(Number);
  const addedMicroseconds = Math.max(seconds * 1_000_000 + microseconds - atMicroseconds, 0);
  const tokens = Math.min(had + (addedMicroseconds * perSecond) / 1_000_000, burst);
  return {
    available: Math.max(Math.floor(tokens), 0),
    bytesToday: Number(bytes ?? 0),
    dayEndsAt: new Date((Math.floor(seconds / daySeconds) + 1) * daySeconds * 1_000),
  };
}

function bytesKey(prefix: string, id: string): string {
  return `${prefix}:bytes-today:${id}`;
}

/**
 * Reads how many bytes of payloads were accepted of each partner today, in UTC by Redis' clock.
 *
 * @throws as {@link countIngests}
 */
export async function readBytesToday(queue: QueueLocation, partners: readonly string[]): Promise<Map<string, number>> {
  const prefix = companionPrefix(queue.prefix, "limits");
  if (partners.length === 0) return new Map();
  const keys = partners.map((id) => bytesKey(prefix, id));
  const values = await withConnection({ ...queue, prefix }, (redis) => redis.mget(keys));
  return new Map(partners.map((id, place) => [id, Number(values[place] ?? 0)]));
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
    return redis.zcount(`${prefix}:ingests`, Number(seconds) - heartbeatValidS, Number(seconds) + 1);
  });
}
