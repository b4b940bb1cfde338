import type { Redis } from "ioredis";
import { companionPrefix } from "../shards/shards.ts";
import { countDaysKept } from "./field-counts.ts";

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
  for (const key of keys) pipeline.pexpire(key, countDaysKept * dayMs);
  for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
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
