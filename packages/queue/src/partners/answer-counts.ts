import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** How many of a partner's events got an answer in an hour. */
export interface AnswerCount {
  partner: string;
  /** In UTC, such as `2026-11-22T13`. */
  hour: string;
  status: number;
  /** Names the answer, such as `accepted` or `invalid-data`. */
  code: string;
  count: number;
}

/** A week, and the one before it to compare it with. Today counts as a whole day. */
const answerDaysKept = 15;
const dayLength = "2026-11-22".length;
const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Adds counts. Each partner and day has a hash of its own, which expires.
 *
 * @throws what ioredis throws. Some counts may have been added
 */
export async function addAnswerCounts(redis: Redis, prefix: string, counts: AnswerCount[]): Promise<void> {
  const pipeline = redis.pipeline();
  const keys = new Set<string>();
  for (const { partner, hour, status, code, count } of counts) {
    const key = toKey(prefix, partner, hour.slice(0, dayLength));
    keys.add(key);
    pipeline.hincrby(key, `${hour} ${status} ${code}`, count);
  }
  for (const key of keys) pipeline.pexpire(key, answerDaysKept * dayMs);
  for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
}

/**
 * Reads all counts of a partner.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readAllAnswerCounts(
  options: QueueLocation & { partner: string; now: Date },
): Promise<AnswerCount[]> {
  const { prefix, partner, now } = options;
  const days = Array.from({ length: answerDaysKept }, (_, age) =>
    new Date(now.getTime() - age * dayMs).toISOString().slice(0, dayLength),
  );
  return withConnection({ ...options, prefix: companionPrefix(prefix, "records") }, (redis) =>
    readAnswerCounts(redis, prefix, { partner, days }),
  );
}

/** Reads the counts of some days, in UTC. */
export async function readAnswerCounts(
  redis: Redis,
  prefix: string,
  { partner, days }: { partner: string; days: readonly string[] },
): Promise<AnswerCount[]> {
  const hashes = await Promise.all(days.map((day) => redis.hgetall(toKey(prefix, partner, day))));
  return hashes.flatMap(Object.entries).map(([name, count]) => {
    const [hour = "", status, code = ""] = name.split(" ");
    return { partner, hour, status: Number(status), code, count: Number(count) };
  });
}

function toKey(prefix: string, partner: string, day: string): string {
  return `${companionPrefix(prefix, "records")}:answers:${partner}:${day}`;
}
