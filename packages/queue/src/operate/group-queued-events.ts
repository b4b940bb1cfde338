import type { Redis } from "ioredis";
import { countList, type List, lists } from "../events/lists.ts";
import { withConnection } from "../redis/with-connection.ts";
import { findShardCount, forEachShard, type ShardedQueue, valuesOf } from "../shards/for-each-shard.ts";
import { type QueuedEvent, toAttemptTime } from "./read-queued-events.ts";
import { type QueuedPlace, walkList } from "./walk-list.ts";

/** Events in the queue that are in the same state and, if they failed, for the same reason. */
export interface QueuedGroup {
  state: QueuedEvent["state"];
  /** Why the last attempt of delayed events failed. Null: of the others. */
  code: string | null;
  count: number;
  /** When the first of them is tried again. */
  nextAttemptAt: Date | null;
}

export interface QueuedGroups {
  groups: QueuedGroup[];
  /** How many events were in the queue, and how many of them were looked at, or counted without a look. */
  total: number;
  looked: number;
}

/** In each list of each shard. */
const maxLooked = 20_000;

/**
 * Counts the events in the queue by their state, and the delayed ones by the code with which their last attempt failed.
 * Beyond the oldest 20,000 in a list, those of test partners count as the others.
 *
 * @param options.partner undefined: of all
 * @param options.isTest counts only events of test partners. Default: only the others
 * @throws what ioredis throws when a shard does not answer within 2 s
 */
export async function groupQueuedEvents(
  options: ShardedQueue & { partner?: string | undefined; isTest?: boolean | undefined },
): Promise<QueuedGroups> {
  const { partner, isTest = false } = options;
  const shardCount = await findShardCount(options);
  const results = await forEachShard({ ...options, shardCount }, (location) =>
    withConnection(location, (redis) => groupShard(redis, location.prefix, { partner, isTest })),
  );
  const shards = valuesOf(results);
  const groups = new Map<string, QueuedGroup>();
  for (const group of shards.flatMap((shard) => shard.groups)) {
    const key = `${group.state} ${group.code ?? ""}`;
    const known = groups.get(key);
    groups.set(key, known === undefined ? group : join(known, group));
  }
  return {
    groups: [...groups.values()].filter(({ count }) => count > 0),
    total: shards.reduce((sum, { total }) => sum + total, 0),
    looked: shards.reduce((sum, { looked }) => sum + looked, 0),
  };
}

function join(one: QueuedGroup, other: QueuedGroup): QueuedGroup {
  const times = [one.nextAttemptAt, other.nextAttemptAt].filter((time) => time !== null);
  const earliest = times.sort((first, second) => first.getTime() - second.getTime())[0] ?? null;
  return { ...one, count: one.count + other.count, nextAttemptAt: earliest };
}

async function groupShard(
  redis: Redis,
  prefix: string,
  { partner, isTest }: { partner: string | undefined; isTest: boolean },
): Promise<QueuedGroups> {
  const shard: QueuedGroups = { groups: [], total: 0, looked: 0 };
  for (const list of lists) {
    const total = await countList(redis, prefix, list);
    shard.total += total;
    const subjectStart = partner === undefined ? "" : `${partner} `;
    let looked = 0;
    for await (const page of walkList(redis, { prefix, list, subjectStart, isTest, from: "oldest", maxLooked })) {
      shard.groups.push(...groupPage(list, page.found));
      looked += page.size;
    }
    const countsRest = partner === undefined && !isTest && list.state !== "delayed" && total > looked;
    if (countsRest) shard.groups.push({ state: list.state, code: null, count: total - looked, nextAttemptAt: null });
    shard.looked += countsRest ? total : looked;
  }
  return shard;
}

function groupPage({ state }: List, places: QueuedPlace[]): QueuedGroup[] {
  const groups = new Map<string | null, QueuedGroup>();
  for (const { code, score } of places) {
    const one =
      state === "delayed"
        ? { state, code, count: 1, nextAttemptAt: toAttemptTime(score) }
        : { state, code: null, count: 1, nextAttemptAt: null };
    const known = groups.get(one.code);
    groups.set(one.code, known === undefined ? one : join(known, one));
  }
  return [...groups.values()];
}
