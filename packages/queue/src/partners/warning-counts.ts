import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** How often a partner got a warning on a day. It holds nothing that the partner wrote. */
export interface WarningCount {
  partner: string;
  /** In UTC, such as `2026-11-22`. */
  day: string;
  /** A field of the contract. */
  field: string;
  /** What was doubtful, such as `similar-name`. */
  code: string;
  count: number;
}

/** Today counts as a whole day. */
export const warningDaysKept = 7;
const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Adds counts. Each partner and day has a hash of its own, which expires.
 *
 * @throws what ioredis throws. Some counts may have been added
 */
export async function addWarningCounts(redis: Redis, prefix: string, counts: WarningCount[]): Promise<void> {
  const pipeline = redis.pipeline();
  for (const { partner, day, field, code, count } of counts) {
    pipeline.hincrby(toKey(prefix, partner, day), `${field} ${code}`, count);
  }
  const keys = new Set(counts.map(({ partner, day }) => toKey(prefix, partner, day)));
  for (const key of keys) pipeline.pexpire(key, warningDaysKept * dayMs);
  const results = (await pipeline.exec()) ?? [];
  for (const [error] of results) if (error !== null) throw error;
}

/**
 * Reads a partner's counts of the last {@link warningDaysKept} days, newest day first.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readWarningCounts(
  options: QueueLocation & { partner: string; now: Date },
): Promise<WarningCount[]> {
  const { prefix, partner, now } = options;
  const days = Array.from({ length: warningDaysKept }, (_, age) => toDay(new Date(now.getTime() - age * dayMs)));
  return withConnection({ ...options, prefix: companionPrefix(prefix, "records") }, async (redis) => {
    const hashes = await Promise.all(days.map((day) => redis.hgetall(toKey(prefix, partner, day))));
    return hashes.flatMap((hash, age) =>
      Object.entries(hash).map(([name, count]) => {
        const [field = "", code = ""] = name.split(" ");
        return { partner, day: days[age] ?? "", field, code, count: Number(count) };
      }),
    );
  });
}

/** The day in UTC. */
export function toDay(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function toKey(prefix: string, partner: string, day: string): string {
  return `${companionPrefix(prefix, "records")}:warnings:${partner}:${day}`;
}
