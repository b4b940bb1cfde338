import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** How often a partner got a warning on a day, and when. It holds nothing that the partner wrote. */
export interface WarningCount {
  partner: string;
  /** In UTC, such as `2026-11-22`. */
  day: string;
  /** A field of the contract, or empty if the warning is about the request. */
  field: string;
  /** What was doubtful, such as `similar-name`. */
  code: string;
  count: number;
  firstAt: Date;
  lastAt: Date;
  /** Null: there were only dry runs. */
  lastEventId: string | null;
}

/** Today counts as a whole day. */
export const warningDaysKept = 7;
const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Adds counts. Each partner and day has a hash of its own, which expires. Processes may overwrite each other's last
 * event, which came within a second.
 *
 * @throws what ioredis throws. Some counts may have been added
 */
export async function addWarningCounts(redis: Redis, prefix: string, counts: WarningCount[]): Promise<void> {
  const pipeline = redis.pipeline();
  for (const { partner, day, field, code, count, firstAt, lastAt, lastEventId } of counts) {
    const key = toKey(prefix, partner, day);
    const name = `${field} ${code}`;
    pipeline.hincrby(key, name, count);
    pipeline.hsetnx(key, `${name} first`, firstAt.toISOString());
    pipeline.hset(key, `${name} last`, lastAt.toISOString());
    if (lastEventId !== null) pipeline.hset(key, `${name} event`, lastEventId);
  }
  const keys = new Set(counts.map(({ partner, day }) => toKey(prefix, partner, day)));
  for (const key of keys) pipeline.pexpire(key, warningDaysKept * dayMs);
  const results = (await pipeline.exec()) ?? [];
  for (const [error] of results) if (error !== null) throw error;
}

/**
 * Reads partners' counts of the last {@link warningDaysKept} days, newest day first.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readWarningCounts(
  options: QueueLocation & { partners: readonly string[]; now: Date },
): Promise<WarningCount[]> {
  const { prefix, partners, now } = options;
  const days = Array.from({ length: warningDaysKept }, (_, age) => toDay(new Date(now.getTime() - age * dayMs)));
  const ofPartners = days.flatMap((day) => partners.map((partner) => ({ partner, day })));
  return withConnection({ ...options, prefix: companionPrefix(prefix, "records") }, async (redis) => {
    const hashes = await Promise.all(ofPartners.map(({ partner, day }) => redis.hgetall(toKey(prefix, partner, day))));
    return hashes.flatMap((hash, index) => toCounts(hash, ofPartners[index] ?? { partner: "", day: "" }));
  });
}

function toCounts(hash: Record<string, string>, of: { partner: string; day: string }): WarningCount[] {
  return Object.entries(hash).flatMap(([name, count]) => {
    const [field = "", code = "", what] = name.split(" ");
    if (what !== undefined) return [];
    return {
      ...{ ...of, field, code, count: Number(count) },
      firstAt: new Date(hash[`${name} first`] ?? of.day),
      lastAt: new Date(hash[`${name} last`] ?? of.day),
      lastEventId: hash[`${name} event`] ?? null,
    };
  });
}

/** The day in UTC. */
export function toDay(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function toKey(prefix: string, partner: string, day: string): string {
  return `${companionPrefix(prefix, "records")}:warnings:${partner}:${day}`;
}
