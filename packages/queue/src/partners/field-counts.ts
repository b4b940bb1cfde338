import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** What is counted: warnings of accepted events and dry runs, or violated rules of refused ones. */
export type Counted = "warnings" | "violations";

/** How often something was wrong with a partner's field on a day, and when. It holds nothing that the partner wrote. */
export interface FieldCount {
  partner: string;
  /** In UTC, such as `2026-11-22`. */
  day: string;
  /** A field of the contract. Of a warning about the request: empty; of a violation, `unlisted` or `payload`, too. */
  field: string;
  /** What was doubtful or wrong, such as `similar-name` or `null`. */
  code: string;
  count: number;
  firstAt: Date;
  lastAt: Date;
  /** Of a violation: the id of the request. Null: there were only dry runs. */
  lastEventId: string | null;
}

/** Today counts as a whole day. */
export const countDaysKept = 7;
const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Adds counts. Each partner and day has a hash of its own, which expires. Processes may overwrite each other's last
 * event, which came within a second.
 *
 * @throws what ioredis throws. Some counts may have been added
 */
export async function addFieldCounts(
  redis: Redis,
  prefix: string,
  counted: Counted,
  counts: FieldCount[],
): Promise<void> {
  const pipeline = redis.pipeline();
  for (const { partner, day, field, code, count, firstAt, lastAt, lastEventId } of counts) {
    const key = toKey(prefix, counted, { partner, day });
    const name = `${field} ${code}`;
    pipeline.hincrby(key, name, count);
    pipeline.hsetnx(key, `${name} first`, firstAt.toISOString());
    pipeline.hset(key, `${name} last`, lastAt.toISOString());
    if (lastEventId !== null) pipeline.hset(key, `${name} event`, lastEventId);
  }
  const keys = new Set(counts.map((count) => toKey(prefix, counted, count)));
  for (const key of keys) pipeline.pexpire(key, countDaysKept * dayMs);
  const results = (await pipeline.exec()) ?? [];
  for (const [error] of results) if (error !== null) throw error;
}

/**
 * Reads partners' warnings of the last {@link countDaysKept} days, newest day first.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readWarningCounts(
  options: QueueLocation & { partners: readonly string[]; now: Date },
): Promise<FieldCount[]> {
  const { prefix, partners, now } = options;
  const days = Array.from({ length: countDaysKept }, (_, age) => toDay(new Date(now.getTime() - age * dayMs)));
  return withConnection({ ...options, prefix: companionPrefix(prefix, "records") }, (redis) =>
    readFieldCounts(redis, prefix, "warnings", { partners, days }),
  );
}

/** @returns the counts of each day, in that order */
export async function readFieldCounts(
  redis: Redis,
  prefix: string,
  counted: Counted,
  { partners, days }: { partners: readonly string[]; days: readonly string[] },
): Promise<FieldCount[]> {
  const ofPartners = days.flatMap((day) => partners.map((partner) => ({ partner, day })));
  const hashes = await Promise.all(ofPartners.map((of) => redis.hgetall(toKey(prefix, counted, of))));
  return hashes.flatMap((hash, index) => toCounts(hash, ofPartners[index] ?? { partner: "", day: "" }));
}

/**
 * Adds up the counts of several days, the most frequent first.
 *
 * @param counts newest day first
 */
export function addUpDays(counts: readonly FieldCount[]): FieldTotal[] {
  const totals = new Map<string, FieldTotal>();
  for (const { day: _, ...count } of counts) {
    const name = `${count.partner} ${count.field} ${count.code}`;
    const newer = totals.get(name);
    totals.set(name, newer === undefined ? count : addOlder(newer, count));
  }
  return [...totals.values()].sort((one, other) => other.count - one.count);
}

export type FieldTotal = Omit<FieldCount, "day">;

function addOlder(newer: FieldTotal, older: FieldTotal): FieldTotal {
  return {
    ...newer,
    count: newer.count + older.count,
    firstAt: older.firstAt,
    lastEventId: newer.lastEventId ?? older.lastEventId,
  };
}

function toCounts(hash: Record<string, string>, of: { partner: string; day: string }): FieldCount[] {
  return Object.entries(hash).flatMap(([name, count]) => {
    const [field = "", code = "", what] = name.split(" ");
    if (what !== undefined) return [];
    return {
      ...of,
      field,
      code,
      count: Number(count),
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

function toKey(prefix: string, counted: Counted, { partner, day }: { partner: string; day: string }): string {
  return `${companionPrefix(prefix, "records")}:${counted}:${partner}:${day}`;
}
